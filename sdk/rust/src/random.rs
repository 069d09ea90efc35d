const GOLDEN: u64 = 0x9e3779b97f4a7c15;

#[inline]
fn finish(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    z ^ (z >> 31)
}

/// A bijection of 64-bit numbers that spreads near values apart.
#[inline]
pub fn mix(x: u64) -> u64 {
    finish(x.wrapping_add(GOLDEN))
}

/// xoshiro256++, seeded through splitmix64.
#[derive(Clone)]
pub struct Rand {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

impl Rand {
    /// A source that depends on seed and stream only; streams of one seed are independent.
    #[inline]
    pub fn new(seed: i64, stream: i64) -> Rand {
        let mut x = mix(seed as u64) ^ mix((stream as u64).wrapping_add(0x632be59bd9b4e019));
        let mut word = || {
            x = x.wrapping_add(GOLDEN);
            finish(x)
        };
        Rand { a: word(), b: word(), c: word(), d: word() }
    }

    /// 64 random bits.
    #[inline]
    pub fn u64(&mut self) -> u64 {
        let out = self.a.wrapping_add(self.d).rotate_left(23).wrapping_add(self.a);
        let t = self.b << 17;
        self.c ^= self.a;
        self.d ^= self.b;
        self.b ^= self.c;
        self.a ^= self.d;
        self.c ^= t;
        self.d = self.d.rotate_left(45);
        out
    }

    /// A number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.u64() >> 11) as i64 as f64 * (1.0 / 9007199254740992.0)
    }

    /// A number in [0, n), without bias; 0 when `n` is not positive.
    #[inline]
    pub fn below(&mut self, n: i64) -> i64 {
        if n <= 0 {
            return 0;
        }
        let m = n as u64;
        if m <= 1 << 32 {
            loop {
                let x = (self.u64() >> 32) * m;
                let low = x & 0xffff_ffff;
                if low >= m || low >= (1 << 32) % m {
                    return (x >> 32) as i64;
                }
            }
        }
        let mut x = self.u64();
        if x.wrapping_mul(m) < m {
            let threshold = m.wrapping_neg() % m;
            while x.wrapping_mul(m) < threshold {
                x = self.u64();
            }
        }
        ((x as u128 * m as u128) >> 64) as i64
    }

    /// A number in [lo, hi].
    #[inline]
    pub fn between(&mut self, lo: i64, hi: i64) -> i64 {
        if hi <= lo {
            return lo;
        }
        lo.wrapping_add(self.below(hi.wrapping_sub(lo).wrapping_add(1)))
    }

    /// Fills `to` with the letters a–p and A–P.
    pub fn letters(&mut self, to: &mut [u8]) {
        self.eights(to, |x| (x & 0x0f0f0f0f0f0f0f0f) + 0x6161616161616161 - (x & 0x2020202020202020));
    }

    /// Fills `to` with random bytes.
    pub fn noise(&mut self, to: &mut [u8]) {
        self.eights(to, |x| x);
    }

    #[inline]
    fn eights(&mut self, to: &mut [u8], of: impl Fn(u64) -> u64) {
        let mut chunks = to.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&of(self.u64()).to_le_bytes());
        }
        let rest = chunks.into_remainder();
        if !rest.is_empty() {
            let n = rest.len();
            rest.copy_from_slice(&of(self.u64()).to_le_bytes()[..n]);
        }
    }
}

// 0x1.62e42feep-1 and 0x1.a39ef35793c76p-33: ln 2 in two parts.
const LN2_HIGH: u64 = 0x3fe62e42fee00000;
const LN2_LOW: u64 = 0x3dea39ef35793c76;

fn ln(x: f64) -> f64 {
    let b = x.to_bits();
    let mut e = (b >> 52) as i64 - 1023;
    let mut m = f64::from_bits(b & ((1 << 52) - 1) | 1023 << 52);
    if m > std::f64::consts::SQRT_2 {
        m *= 0.5;
        e += 1;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut sum = 1.0 / 23.0;
    sum = sum * z + 1.0 / 21.0;
    sum = sum * z + 1.0 / 19.0;
    sum = sum * z + 1.0 / 17.0;
    sum = sum * z + 1.0 / 15.0;
    sum = sum * z + 1.0 / 13.0;
    sum = sum * z + 1.0 / 11.0;
    sum = sum * z + 1.0 / 9.0;
    sum = sum * z + 1.0 / 7.0;
    sum = sum * z + 1.0 / 5.0;
    sum = sum * z + 1.0 / 3.0;
    sum = sum * z + 1.0;
    let f = e as f64;
    f * f64::from_bits(LN2_HIGH) + (f * f64::from_bits(LN2_LOW) + 2.0 * s * sum)
}

fn exp(t: f64) -> f64 {
    let n = t * std::f64::consts::LOG2_E;
    if n.is_nan() || n <= -1000.0 {
        return 0.0;
    }
    if n > 1000.0 {
        return f64::from_bits((1000 + 1023) << 52);
    }
    let k = (n + 2048.5) as i64;
    let f = (k - 2048) as f64;
    let r = t - f * f64::from_bits(LN2_HIGH) - f * f64::from_bits(LN2_LOW);
    let mut sum = 1.0 / 87178291200.0;
    sum = sum * r + 1.0 / 6227020800.0;
    sum = sum * r + 1.0 / 479001600.0;
    sum = sum * r + 1.0 / 39916800.0;
    sum = sum * r + 1.0 / 3628800.0;
    sum = sum * r + 1.0 / 362880.0;
    sum = sum * r + 1.0 / 40320.0;
    sum = sum * r + 1.0 / 5040.0;
    sum = sum * r + 1.0 / 720.0;
    sum = sum * r + 1.0 / 120.0;
    sum = sum * r + 1.0 / 24.0;
    sum = sum * r + 1.0 / 6.0;
    sum = sum * r + 1.0 / 2.0;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    sum * f64::from_bits(((k - 2048 + 1023) as u64) << 52)
}

/// x^y for x > 0. It computes the same bits in every SDK.
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x > 0.0 {
        exp(y * ln(x))
    } else {
        0.0
    }
}

#[derive(Clone, Copy, Default)]
struct Cell {
    lo: i64,
    width: i64,
    sure: f64,
    keep: u64,
    alias: u32,
}

/// Draws ranks 0 … n-1 with probability proportional to 1/(rank+1)^theta, exactly,
/// for any theta ≥ 0.
pub struct Zipf {
    theta: f64,
    cells: Vec<Cell>,
    mask: u64,
}

impl Zipf {
    /// Prepares a distribution over `n` ranks; `n` below 1 counts as 1, `theta` below 0 as 0.
    pub fn new(n: i64, theta: f64) -> Zipf {
        let n = n.max(1);
        let theta = if theta >= 0.0 { theta } else { 0.0 };
        let (mut cells, mut weights) = (Vec::new(), Vec::new());
        let mut lo: i64 = 1;
        while lo <= n {
            let width = if lo > 64 { (lo / 8).min(n - lo + 1).max(1) } else { 1 };
            let sure = pow(lo as f64 / (lo + (width - 1)) as f64, theta);
            cells.push(Cell { lo, width, sure, keep: 0, alias: 0 });
            weights.push(width as f64 * pow(lo as f64, -theta));
            if lo > n - width {
                break;
            }
            lo += width;
        }
        let size = weights.len().next_power_of_two();
        weights.resize(size, 0.0);
        cells.resize(size, Cell { lo: 1, width: 1, sure: 1.0, keep: 0, alias: 0 });
        let mut sum = 0.0;
        for w in &weights {
            sum += w;
        }
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for (i, w) in weights.iter_mut().enumerate() {
            *w *= size as f64 / sum;
            if *w < 1.0 {
                small.push(i);
            } else {
                large.push(i);
            }
        }
        const FULL: u64 = 1 << 53;
        while let (Some(&s), Some(&l)) = (small.last(), large.last()) {
            small.pop();
            cells[s].keep = (weights[s] * FULL as f64) as u64;
            cells[s].alias = l as u32;
            weights[l] += weights[s] - 1.0;
            if weights[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        for i in small.into_iter().chain(large) {
            cells[i].keep = FULL;
            cells[i].alias = i as u32;
        }
        Zipf { theta, cells, mask: size as u64 - 1 }
    }

    /// Draws a rank.
    #[inline]
    pub fn next(&self, r: &mut Rand) -> i64 {
        loop {
            let x = r.u64();
            let mut c = &self.cells[(x & self.mask) as usize];
            if x >> 11 >= c.keep {
                c = &self.cells[c.alias as usize];
            }
            if c.width == 1 {
                return c.lo - 1;
            }
            let rank = c.lo + r.below(c.width);
            let u = r.unit();
            if u < c.sure || u < pow(c.lo as f64 / rank as f64, self.theta) {
                return rank - 1;
            }
        }
    }
}

/// Maps ranks onto [0, n) one to one, so that neighbouring ranks lie far apart: a
/// skewed workload then touches the whole table instead of its first pages.
pub struct Scramble {
    n: u64,
    step: u64,
    offset: u64,
}

impl Scramble {
    /// A permutation of [0, n).
    pub fn new(n: i64) -> Scramble {
        let n = n.max(1) as u64;
        let mut s = Scramble { n, step: 0, offset: 0 };
        if n < 1 << 31 {
            s.step = (n as f64 * 0.6180339887498949) as u64 | 1;
            while divisor(s.step, n) != 1 {
                s.step += 2;
            }
            s.step %= n;
            s.offset = mix(n) % n;
        }
        s
    }

    /// The place of a rank in [0, n). From 2^31 on places may coincide.
    #[inline]
    pub fn at(&self, rank: i64) -> i64 {
        if self.n < 1 << 31 {
            return (((rank as u64).wrapping_mul(self.step) + self.offset) % self.n) as i64;
        }
        (mix(rank as u64) % self.n) as i64
    }
}

fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
