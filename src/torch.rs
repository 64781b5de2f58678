//! PyTorch's seeded CPU generator and the initialisers that draw from it, bit for bit.
//!
//! The same seed and the same calls in the same order give the numbers that a notebook gets after
//! [`torch.manual_seed`](https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html), as long as both draw
//! the same amounts: what a call leaves in the generator (its place in the stream, a spare normal) is part of the state.
//!
//! The numbers are those of PyTorch on x86-64 with AVX2 or AVX-512. PyTorch itself differs elsewhere: on other
//! processors its [`randn`](Generator::randn) of 16 values or more has other last places (by at most 2.1e-6), and on
//! x86-64 without FMA so has everything that [`uniform`](Generator::uniform) draws.
//! Fewer than 16 normals, and every float64 normal, go through the logarithm, sine and cosine of the platform, whose
//! last place (float64) is not specified.
//!
//! Counts are taken at their word: a caller that gets them from outside first checks that they fit in memory.
//!
//! `log` and `sin_cos` are the polynomials of the Cephes library in the form of avx_mathfun (J. Pommier, G. Garberoglio;
//! zlib licence), with the fused steps of PyTorch's build (BSD-3-Clause).

use std::f32::consts::{FRAC_1_SQRT_2, TAU};

/// Words in the state of MT19937.
const STATE: usize = 624;

/// Values that PyTorch's vectorised normals make at a time: eight radii, then eight angles.
const BLOCK: usize = 16;

/// A seeded generator: the stream of
/// [`torch.Generator`](https://docs.pytorch.org/docs/stable/generated/torch.Generator.html) on the CPU (MT19937).
#[derive(Clone, Debug)]
pub struct Generator {
    state: [u32; STATE],
    next: usize,
    spare_normal: Option<f64>,
}

/// The parameters of [`torch.nn.Linear`](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html).
#[derive(Clone, Debug, PartialEq)]
pub struct Linear {
    /// `[out_features, in_features]`, row-major.
    pub weight: Vec<f32>,
    /// `[out_features]`.
    pub bias: Option<Vec<f32>>,
}

/// [`Generator::randint`] was asked for integers from a range that holds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyRange {
    /// The lowest integer asked for.
    pub low: i64,
    /// One above the highest integer asked for.
    pub high: i64,
}

impl std::error::Error for EmptyRange {}

impl std::fmt::Display for EmptyRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { low, high } = self;
        write!(f, "randint expects low < high, but got low = {low} and high = {high}")
    }
}

impl Generator {
    /// The state after [`torch.manual_seed(seed)`](https://docs.pytorch.org/docs/stable/generated/torch.manual_seed.html);
    /// as there, only the low 32 bits of the seed count.
    pub fn new(seed: i64) -> Self {
        let mut state = [seed as u32; STATE];
        for i in 1..STATE {
            let previous = state[i - 1];
            state[i] = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { state, next: STATE, spare_normal: None }
    }

    /// The next word of the stream, which everything else is made of.
    pub fn u32(&mut self) -> u32 {
        if self.next == STATE {
            self.twist();
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for i in 0..STATE {
            let word = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % STATE] & 0x7fff_ffff);
            let odd = if word & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + 397) % STATE] ^ (word >> 1) ^ odd;
        }
        self.next = 0;
    }

    fn u64(&mut self) -> u64 {
        let high = u64::from(self.u32());
        high << 32 | u64::from(self.u32())
    }

    /// One float32 in [0, 1): the low 24 bits of a word.
    fn unit(&mut self) -> f32 {
        (self.u32() & 0xff_ffff) as f32 / (1 << 24) as f32
    }

    /// One float64 in [0, 1): the low 53 bits of two words.
    fn unit64(&mut self) -> f64 {
        (self.u64() & ((1 << 53) - 1)) as f64 / (1_u64 << 53) as f64
    }

    /// [`torch.rand(n)`](https://docs.pytorch.org/docs/stable/generated/torch.rand.html): uniform in [0, 1).
    pub fn rand(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit()).collect()
    }

    /// [`torch.rand(n, dtype=torch.float64)`](https://docs.pytorch.org/docs/stable/generated/torch.rand.html).
    pub fn rand64(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.unit64()).collect()
    }

    /// [`torch.empty(n).uniform_(low, high)`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.uniform_.html):
    /// uniform in [low, high), for `low <= high`.
    pub fn uniform(&mut self, n: usize, low: f64, high: f64) -> Vec<f32> {
        let (low, high) = (low as f32, high as f32);
        let width = high - low;
        (0..n)
            .map(|_| {
                let value = self.unit().mul_add(width, low);
                if value == high { low } else { value }
            })
            .collect()
    }

    /// Uniform in [-bound, bound).
    fn symmetric(&mut self, n: usize, bound: f64) -> Vec<f32> {
        // Not `-bound`: a bound of zero is to give 0, not -0.
        self.uniform(n, 0.0 - bound, bound)
    }

    /// [`torch.randn(n)`](https://docs.pytorch.org/docs/stable/generated/torch.randn.html): standard normal.
    ///
    /// `n` is that of the whole tensor; two calls of 8 do not give what one call of 16 gives. An odd `n` below 16
    /// leaves a spare normal, which the next such call takes first.
    pub fn randn(&mut self, n: usize) -> Vec<f32> {
        self.normal(n, 0.0, 1.0)
    }

    /// [`torch.randn(n, dtype=torch.float64)`](https://docs.pytorch.org/docs/stable/generated/torch.randn.html).
    pub fn randn64(&mut self, n: usize) -> Vec<f64> {
        if n < BLOCK {
            return (0..n).map(|_| self.standard_normal()).collect();
        }
        self.box_muller(n, Self::unit64, |u1, u2| {
            let radius = (-2.0 * (1.0 - u1).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * u2).sin_cos();
            (radius * cos, radius * sin)
        })
    }

    /// [`torch.empty(n).normal_(mean, std)`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.normal_.html):
    /// normal, drawn as [`randn`](Self::randn) draws.
    pub fn normal(&mut self, n: usize, mean: f64, std: f64) -> Vec<f32> {
        if n < BLOCK {
            return (0..n).map(|_| (self.standard_normal() * std + mean) as f32).collect();
        }
        let (mean, std) = (mean as f32, std as f32);
        self.box_muller(n, Self::unit, |u1, u2| {
            let radius = (-2.0 * log(1.0 - u1)).sqrt();
            let (sin, cos) = sin_cos(TAU * u2);
            ((radius * cos).mul_add(std, mean), (radius * sin).mul_add(std, mean))
        })
    }

    /// One standard normal; the sine that comes with the cosine is kept for the next call.
    fn standard_normal(&mut self) -> f64 {
        if let Some(spare) = self.spare_normal.take() {
            return spare;
        }
        let (u1, u2) = (self.unit64(), self.unit64());
        let radius = (-2.0 * (-u2).ln_1p()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * u1).sin_cos();
        self.spare_normal = Some(radius * sin);
        radius * cos
    }

    /// At least a block of normals: all uniforms first, each pair of a block then replaced by the pair that `transform`
    /// makes of it. A last block that is not full ends at the end, on fresh uniforms, over what was there.
    fn box_muller<T: Copy>(
        &mut self,
        n: usize,
        draw: fn(&mut Self) -> T,
        transform: impl Fn(T, T) -> (T, T),
    ) -> Vec<T> {
        let transform_block = |block: &mut [T]| {
            let (radii, angles) = block.split_at_mut(BLOCK / 2);
            for (u1, u2) in radii.iter_mut().zip(angles) {
                (*u1, *u2) = transform(*u1, *u2);
            }
        };
        let mut values: Vec<T> = (0..n).map(|_| draw(self)).collect();
        values.chunks_exact_mut(BLOCK).for_each(transform_block);
        if !n.is_multiple_of(BLOCK) {
            let last = &mut values[n - BLOCK..];
            last.fill_with(|| draw(self));
            transform_block(last);
        }
        values
    }

    /// [`torch.nn.Linear(in_features, out_features, bias)`](https://docs.pytorch.org/docs/stable/generated/torch.nn.Linear.html):
    /// the weight, then the bias, uniform within `1 / sqrt(in_features)`.
    pub fn linear(&mut self, in_features: usize, out_features: usize, bias: bool) -> Linear {
        let root = (in_features as f64).sqrt();
        // kaiming_uniform_(a=sqrt(5)) in PyTorch's own steps: 1 / sqrt(in_features), but for the rounding.
        let slope = 5.0_f64.sqrt();
        let gain = (2.0 / (1.0 + slope * slope)).sqrt();
        let weight = self.symmetric(in_features * out_features, 3.0_f64.sqrt() * (gain / root));
        let bound = if in_features > 0 { 1.0 / root } else { 0.0 };
        Linear { weight, bias: bias.then(|| self.symmetric(out_features, bound)) }
    }

    /// The weight of [`torch.nn.Embedding(rows, cols, padding_idx)`](https://docs.pytorch.org/docs/stable/generated/torch.nn.Embedding.html),
    /// `[rows, cols]`: standard normal, with zeros in the row `padding_idx` where there is such a row.
    pub fn embedding(&mut self, rows: usize, cols: usize, padding_idx: Option<usize>) -> Vec<f32> {
        let mut weight = self.randn(rows * cols);
        if let Some(row) = padding_idx.filter(|&row| row < rows) {
            weight[row * cols..(row + 1) * cols].fill(0.0);
        }
        weight
    }

    /// [`torch.nn.init.xavier_uniform_`](https://docs.pytorch.org/docs/stable/nn.init.html#torch.nn.init.xavier_uniform_)
    /// of a weight `[rows, cols]`.
    pub fn xavier_uniform(&mut self, rows: usize, cols: usize) -> Vec<f32> {
        self.symmetric(rows * cols, 3.0_f64.sqrt() * xavier_std(cols, rows))
    }

    /// [`torch.nn.init.xavier_normal_`](https://docs.pytorch.org/docs/stable/nn.init.html#torch.nn.init.xavier_normal_)
    /// of `n` values. Of a weight `[rows, cols]` the fans are `cols` and `rows`; of the `bias_k` and `bias_v`
    /// `[1, 1, embed_dim]` of `torch.nn.MultiheadAttention` both are `embed_dim`.
    pub fn xavier_normal(&mut self, n: usize, fan_in: usize, fan_out: usize) -> Vec<f32> {
        self.normal(n, 0.0, xavier_std(fan_in, fan_out))
    }

    /// [`torch.randint(low, high, (n,))`](https://docs.pytorch.org/docs/stable/generated/torch.randint.html): integers
    /// in [low, high). A range of 2^28 or more takes two words for each; PyTorch has set that limit higher before.
    ///
    /// # Errors
    ///
    /// [`EmptyRange`] unless `low < high`; nothing is drawn then.
    pub fn randint(&mut self, low: i64, high: i64, n: usize) -> Result<Vec<i64>, EmptyRange> {
        if low >= high {
            return Err(EmptyRange { low, high });
        }
        let range = high.abs_diff(low);
        Ok((0..n)
            .map(|_| {
                let word = if range < 1 << 28 { u64::from(self.u32()) } else { self.u64() };
                low.wrapping_add_unsigned(word % range)
            })
            .collect())
    }

    /// [`torch.randperm(n)`](https://docs.pytorch.org/docs/stable/generated/torch.randperm.html): the integers below
    /// `n`, shuffled.
    pub fn randperm(&mut self, n: usize) -> Vec<i64> {
        let mut permutation: Vec<i64> = (0..n as i64).collect();
        for i in 1..n {
            let rest = &mut permutation[i - 1..];
            rest.swap(0, self.u32() as usize % rest.len());
        }
        permutation
    }

    /// [`torch.empty(n).bernoulli_(p)`](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.bernoulli_.html):
    /// 1 with probability `p`, else 0. PyTorch before 2.7 draws otherwise on x86-64.
    pub fn bernoulli(&mut self, n: usize, p: f64) -> Vec<f32> {
        (0..n).map(|_| if self.unit64() < p { 1.0 } else { 0.0 }).collect()
    }

    /// [`torch.nn.functional.dropout(x, p)`](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html)
    /// in training: a value is dropped with probability `p`, the others are divided by `1 - p`. As there, nothing is
    /// drawn where `p` is 0 or 1. Drawn by [`bernoulli`](Self::bernoulli).
    pub fn dropout(&mut self, x: &[f32], p: f64) -> Vec<f32> {
        if p == 0.0 {
            return x.to_vec();
        }
        if p == 1.0 {
            return x.iter().map(|value| value * 0.0).collect();
        }
        let keep = 1.0 - p;
        let noise = self.bernoulli(x.len(), keep);
        x.iter().zip(noise).map(|(value, kept)| value * (kept / keep as f32)).collect()
    }
}

fn xavier_std(fan_in: usize, fan_out: usize) -> f64 {
    (2.0 / (fan_in as f64 + fan_out as f64)).sqrt()
}

/// The polynomial with these coefficients, highest power first.
fn horner(x: f32, coefficients: &[f32]) -> f32 {
    coefficients.iter().fold(0.0_f32, |sum, coefficient| sum.mul_add(x, *coefficient))
}

/// The natural logarithm of a normal number above zero.
fn log(x: f32) -> f32 {
    const LOG: [f32; 9] = [
        0.070376836,
        -0.1151461,
        0.116769984,
        -0.12420141,
        0.14249323,
        -0.16668057,
        0.20000714,
        -0.24999994,
        0.3333333,
    ];
    // log(2) in two parts.
    const LN_2_HIGH: f32 = 355.0 / 512.0;
    const LN_2_LOW: f32 = -2.1219444e-4;

    // x = mantissa * 2^exponent, the mantissa between sqrt(1/2) and sqrt(2).
    let bits = x.to_bits();
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    let exponent = (bits >> 23) as f32 - 126.0;
    let (exponent, x) =
        if mantissa < FRAC_1_SQRT_2 { (exponent - 1.0, mantissa - 1.0 + mantissa) } else { (exponent, mantissa - 1.0) };

    let square = x * x;
    let tail = (horner(x, &LOG) * x).mul_add(square, exponent * LN_2_LOW);
    let tail = square.mul_add(-0.5, tail);
    exponent.mul_add(LN_2_HIGH, x + tail)
}

/// Sine and cosine of an angle from 0 to 2 pi.
fn sin_cos(x: f32) -> (f32, f32) {
    const SIN: [f32; 3] = [-1.9515296e-4, 8.332161e-3, -0.16666655];
    const COS: [f32; 3] = [2.4433157e-5, -1.3887316e-3, 0.041666646];
    const FRAC_4_PI: f32 = 1.2732395;
    // -pi / 4 in three parts.
    const MINUS_FRAC_PI_4: [f32; 3] = [-0.78515625, -2.4187565e-4, -3.774895e-8];

    // The octants in pairs: x lies within pi / 4 of octant * pi / 4.
    let octant = ((x * FRAC_4_PI) as i32 + 1) & !1;
    let x = MINUS_FRAC_PI_4.iter().fold(x, |x, part| (octant as f32).mul_add(*part, x));

    let square = x * x;
    let cos = (horner(square, &COS) * square).mul_add(square, -0.5 * square) + 1.0;
    let sin = (horner(square, &SIN) * square).mul_add(x, x);

    let (sin, cos) = if octant & 2 == 0 { (sin, cos) } else { (cos, sin) };
    (if octant & 4 == 0 { sin } else { -sin }, if (octant + 2) & 4 == 0 { cos } else { -cos })
}
