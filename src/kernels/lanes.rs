//! Four float32 side by side: a WebAssembly `v128` where the build has SIMD128, an array elsewhere.
//! The kernels are written once over it, so that native tests run the very same tiles.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use core::arch::wasm32::{f32x4_add, f32x4_mul, f32x4_splat, v128, v128_load, v128_load32_splat, v128_store};

    pub const NAME: &str = "simd128";

    #[derive(Clone, Copy)]
    pub struct Lanes(v128);

    impl Lanes {
        #[inline(always)]
        pub fn zero() -> Self {
            Self(f32x4_splat(0.0))
        }
        #[inline(always)]
        pub unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { v128_load(from.cast()) })
        }
        #[inline(always)]
        pub unsafe fn splat_from(from: *const f32) -> Self {
            Self(unsafe { v128_load32_splat(from.cast()) })
        }
        #[inline(always)]
        pub unsafe fn store(self, to: *mut f32) {
            unsafe { v128_store(to.cast(), self.0) }
        }
        #[inline(always)]
        pub fn add(self, other: Self) -> Self {
            Self(f32x4_add(self.0, other.0))
        }
        #[inline(always)]
        pub fn mul_add(self, by: Self, plus: Self) -> Self {
            Self(f32x4_add(f32x4_mul(self.0, by.0), plus.0))
        }
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod scalar {
    pub const NAME: &str = "scalar";

    #[derive(Clone, Copy)]
    pub struct Lanes([f32; 4]);

    impl Lanes {
        #[inline(always)]
        pub fn zero() -> Self {
            Self([0.0; 4])
        }
        #[inline(always)]
        pub unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
        }
        #[inline(always)]
        pub unsafe fn splat_from(from: *const f32) -> Self {
            Self([unsafe { *from }; 4])
        }
        #[inline(always)]
        pub unsafe fn store(self, to: *mut f32) {
            unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
        }
        #[inline(always)]
        pub fn add(self, other: Self) -> Self {
            Self(std::array::from_fn(|lane| self.0[lane] + other.0[lane]))
        }
        #[inline(always)]
        pub fn mul_add(self, by: Self, plus: Self) -> Self {
            Self(std::array::from_fn(|lane| self.0[lane] * by.0[lane] + plus.0[lane]))
        }
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) use scalar::{Lanes, NAME};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use simd128::{Lanes, NAME};
