//! Four float32 side by side: a WebAssembly `v128` where the build has SIMD128, an array elsewhere.
//! The kernels are written once over it, so that native tests run the very same tiles.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128 {
    use core::arch::wasm32::*;

    #[cfg(target_feature = "relaxed-simd")]
    pub const NAME: &str = "relaxed-simd";
    #[cfg(not(target_feature = "relaxed-simd"))]
    pub const NAME: &str = "simd128";

    #[derive(Clone, Copy)]
    pub struct Lanes(v128);

    impl Lanes {
        #[inline(always)]
        pub fn splat(number: f32) -> Self {
            Self(f32x4_splat(number))
        }
        #[inline(always)]
        pub unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { v128_load(from.cast()) })
        }
        #[inline(always)]
        pub fn of([a, b, c, d]: [f32; 4]) -> Self {
            Self(f32x4(a, b, c, d))
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
        pub fn sub(self, other: Self) -> Self {
            Self(f32x4_sub(self.0, other.0))
        }
        #[inline(always)]
        pub fn mul(self, other: Self) -> Self {
            Self(f32x4_mul(self.0, other.0))
        }
        #[inline(always)]
        pub fn div(self, other: Self) -> Self {
            Self(f32x4_div(self.0, other.0))
        }
        /// self · by + plus, rounded once where the build has relaxed SIMD, else twice.
        #[inline(always)]
        pub fn mul_add(self, by: Self, plus: Self) -> Self {
            #[cfg(target_feature = "relaxed-simd")]
            return Self(f32x4_relaxed_madd(self.0, by.0, plus.0));
            #[cfg(not(target_feature = "relaxed-simd"))]
            Self(f32x4_add(f32x4_mul(self.0, by.0), plus.0))
        }
        /// The larger; where either is NaN, NaN or either: compilers make of it what a runtime does fastest.
        #[inline(always)]
        pub fn max(self, other: Self) -> Self {
            Self(f32x4_pmax(self.0, other.0))
        }
        /// Bits of 1 where it is not above the other; NaN is not.
        #[inline(always)]
        pub fn at_most(self, other: Self) -> Self {
            Self(f32x4_le(self.0, other.0))
        }
        /// 0 where there are such bits.
        #[inline(always)]
        pub fn without(self, bits: Self) -> Self {
            Self(v128_andnot(self.0, bits.0))
        }
        /// Bits of 1 where either is NaN.
        #[inline(always)]
        pub fn unordered(self, other: Self) -> Self {
            Self(v128_or(f32x4_ne(self.0, self.0), f32x4_ne(other.0, other.0)))
        }
        #[inline(always)]
        pub fn has_bits(self) -> bool {
            v128_any_true(self.0)
        }
        /// 2 to the power of what stands in the lowest bits, less the bias of exponents.
        #[inline(always)]
        pub fn power_of_two(self) -> Self {
            Self(i32x4_shl(self.0, 23))
        }
        #[inline(always)]
        pub fn transposed([a, b, c, d]: [Self; 4]) -> [Self; 4] {
            let (ab_low, ab_high) = (i32x4_shuffle::<0, 4, 1, 5>(a.0, b.0), i32x4_shuffle::<2, 6, 3, 7>(a.0, b.0));
            let (cd_low, cd_high) = (i32x4_shuffle::<0, 4, 1, 5>(c.0, d.0), i32x4_shuffle::<2, 6, 3, 7>(c.0, d.0));
            [
                Self(i64x2_shuffle::<0, 2>(ab_low, cd_low)),
                Self(i64x2_shuffle::<1, 3>(ab_low, cd_low)),
                Self(i64x2_shuffle::<0, 2>(ab_high, cd_high)),
                Self(i64x2_shuffle::<1, 3>(ab_high, cd_high)),
            ]
        }
        /// Stores the first two.
        #[inline(always)]
        pub unsafe fn store_two(self, to: *mut f32) {
            unsafe { v128_store64_lane::<0>(self.0, to.cast()) }
        }
        #[inline(always)]
        pub fn to_array(self) -> [f32; 4] {
            [
                f32x4_extract_lane::<0>(self.0),
                f32x4_extract_lane::<1>(self.0),
                f32x4_extract_lane::<2>(self.0),
                f32x4_extract_lane::<3>(self.0),
            ]
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
        pub fn splat(number: f32) -> Self {
            Self([number; 4])
        }
        #[inline(always)]
        pub unsafe fn load(from: *const f32) -> Self {
            Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
        }
        #[inline(always)]
        pub fn of(numbers: [f32; 4]) -> Self {
            Self(numbers)
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
            self.each(other, |x, y| x + y)
        }
        #[inline(always)]
        pub fn sub(self, other: Self) -> Self {
            self.each(other, |x, y| x - y)
        }
        #[inline(always)]
        pub fn mul(self, other: Self) -> Self {
            self.each(other, |x, y| x * y)
        }
        #[inline(always)]
        pub fn div(self, other: Self) -> Self {
            self.each(other, |x, y| x / y)
        }
        #[inline(always)]
        pub fn mul_add(self, by: Self, plus: Self) -> Self {
            self.mul(by).add(plus)
        }
        #[inline(always)]
        pub fn max(self, other: Self) -> Self {
            self.each(other, |x, y| if x > y { x } else { y })
        }
        #[inline(always)]
        pub fn at_most(self, other: Self) -> Self {
            self.each(other, |x, y| if x <= y { f32::from_bits(u32::MAX) } else { 0.0 })
        }
        #[inline(always)]
        pub fn without(self, bits: Self) -> Self {
            self.each(bits, |x, bits| f32::from_bits(x.to_bits() & !bits.to_bits()))
        }
        #[inline(always)]
        pub fn unordered(self, other: Self) -> Self {
            self.each(other, |x, y| if x.is_nan() || y.is_nan() { f32::from_bits(u32::MAX) } else { 0.0 })
        }
        #[inline(always)]
        pub fn has_bits(self) -> bool {
            self.0.iter().any(|x| x.to_bits() != 0)
        }
        #[inline(always)]
        pub fn power_of_two(self) -> Self {
            Self(self.0.map(|x| f32::from_bits(x.to_bits() << 23)))
        }
        #[inline(always)]
        pub fn transposed(rows: [Self; 4]) -> [Self; 4] {
            std::array::from_fn(|column| Self(rows.map(|row| row.0[column])))
        }
        #[inline(always)]
        pub unsafe fn store_two(self, to: *mut f32) {
            unsafe { to.cast::<[f32; 2]>().write_unaligned([self.0[0], self.0[1]]) }
        }
        #[inline(always)]
        pub fn to_array(self) -> [f32; 4] {
            self.0
        }
        #[inline(always)]
        fn each(self, other: Self, with: impl Fn(f32, f32) -> f32) -> Self {
            Self(std::array::from_fn(|lane| with(self.0[lane], other.0[lane])))
        }
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
pub(crate) use scalar::{Lanes, NAME};
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
pub(crate) use simd128::{Lanes, NAME};

impl Lanes {
    #[inline(always)]
    pub fn sum(self) -> f32 {
        let [a, b, c, d] = self.to_array();
        (a + b) + (c + d)
    }

    /// The largest of numbers of which none is NaN.
    #[inline(always)]
    pub fn largest(self) -> f32 {
        let [a, b, c, d] = self.to_array();
        a.max(b).max(c.max(d))
    }
}
