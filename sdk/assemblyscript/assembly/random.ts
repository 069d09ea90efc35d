@inline
function mixed(x: u64): u64 {
  let z = x;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/** A bijection of 64-bit numbers that spreads near values apart. */
@inline
export function mix(x: u64): u64 {
  return mixed(x + 0x9e3779b97f4a7c15);
}

/** xoshiro256++, seeded through splitmix64. */
@final
export class Rand {
  private a: u64 = 0;
  private b: u64 = 0;
  private c: u64 = 0;
  private d: u64 = 0;

  /** A source that depends on seed and stream only; streams of one seed are independent. */
  constructor(seed: i64 = 0, stream: i64 = 0) {
    this.seed(seed, stream);
  }

  /** Starts anew where the constructor does. */
  seed(seed: i64, stream: i64): void {
    let x = mix(<u64>seed) ^ mix(<u64>stream + 0x632be59bd9b4e019);
    this.a = mixed((x += 0x9e3779b97f4a7c15));
    this.b = mixed((x += 0x9e3779b97f4a7c15));
    this.c = mixed((x += 0x9e3779b97f4a7c15));
    this.d = mixed((x += 0x9e3779b97f4a7c15));
  }

  /** 64 random bits. */
  @inline
  u64(): u64 {
    const out = rotl<u64>(this.a + this.d, 23) + this.a;
    const t = this.b << 17;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= t;
    this.d = rotl<u64>(this.d, 45);
    return out;
  }

  /** A number in [0, 1). */
  @inline
  unit(): f64 {
    return <f64>(<i64>(this.u64() >> 11)) * (1.0 / 9007199254740992.0);
  }

  /** A number in [0, n), without bias; 0 when n is not positive. */
  @inline
  below(n: i64): i64 {
    const m = <u64>n;
    if (m - 1 >= 0x100000000) return this.wide(n);
    const x = (this.u64() >> 32) * m;
    return (x & 0xffffffff) >= m ? <i64>(x >> 32) : this.settled(x, m);
  }

  // The rare case in which a draw may have to be repeated.
  private settled(x: u64, m: u64): i64 {
    while ((x & 0xffffffff) < m && (x & 0xffffffff) < 0x100000000 % m) x = (this.u64() >> 32) * m;
    return <i64>(x >> 32);
  }

  private wide(n: i64): i64 {
    if (n <= 0) return 0;
    const m = <u64>n;
    let x = this.u64();
    if (x * m < m) {
      const threshold = (0 - m) % m;
      while (x * m < threshold) x = this.u64();
    }
    return <i64>mulHigh(x, m);
  }

  /** A number in [lo, hi]. */
  @inline
  between(lo: i64, hi: i64): i64 {
    return hi <= lo ? lo : lo + this.below(hi - lo + 1);
  }

  /** Fills n bytes with the letters a–p and A–P. */
  letters(to: usize, n: u32): void {
    while (n) {
      let x = this.u64();
      x = (x & 0x0f0f0f0f0f0f0f0f) + 0x6161616161616161 - (x & 0x2020202020202020);
      if (n < 8) {
        for (let i: u32 = 0; i < n; i++, x >>= 8) store<u8>(to + i, <u8>x);
        return;
      }
      store<u64>(to, x);
      to += 8;
      n -= 8;
    }
  }

  /** Fills n bytes with random bytes. */
  noise(to: usize, n: u32): void {
    for (; n >= 8; n -= 8, to += 8) store<u64>(to, this.u64());
    if (n) {
      let x = this.u64();
      for (let i: u32 = 0; i < n; i++, x >>= 8) store<u8>(to + i, <u8>x);
    }
  }
}

function mulHigh(a: u64, b: u64): u64 {
  const al = a & 0xffffffff;
  const ah = a >> 32;
  const bl = b & 0xffffffff;
  const bh = b >> 32;
  const mid = ah * bl + ((al * bl) >> 32);
  const mid2 = al * bh + (mid & 0xffffffff);
  return ah * bh + (mid >> 32) + (mid2 >> 32);
}

function ln(x: f64): f64 {
  const b = reinterpret<u64>(x);
  let e = <i64>(b >> 52) - 1023;
  let m = reinterpret<f64>((b & 0xfffffffffffff) | (1023 << 52));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    e++;
  }
  const s = (m - 1) / (m + 1);
  const z = s * s;
  let sum: f64 = 1.0 / 23;
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
  sum = sum * z + 1;
  const f = <f64>e;
  return f * LN2_HIGH + (f * LN2_LOW + 2 * s * sum);
}

const LN2_HIGH = reinterpret<f64>(0x3fe62e42fee00000);
const LN2_LOW = reinterpret<f64>(0x3dea39ef35793c76);

function exp(t: f64): f64 {
  const n = t * 1.4426950408889634;
  if (!(n > -1000)) return 0;
  if (n > 1000) return reinterpret<f64>(<u64>(1000 + 1023) << 52);
  const k = <i64>(n + 2048.5);
  const f = <f64>(k - 2048);
  const r = t - f * LN2_HIGH - f * LN2_LOW;
  let sum: f64 = 1.0 / 87178291200.0;
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
  sum = sum * r + 1;
  sum = sum * r + 1;
  return sum * reinterpret<f64>(<u64>(k - 2048 + 1023) << 52);
}

/** x^y for x > 0. It computes the same bits in every SDK. */
export function pow(x: f64, y: f64): f64 {
  if (y == 0 || x == 1) return 1;
  return x > 0 ? exp(y * ln(x)) : 0;
}

@unmanaged
class Cell {
  lo: i64;
  width: i64;
  sure: f64;
  keep: u64;
  alias: u32;
}

/**
 * Draws ranks 0 … n-1 with probability proportional to 1/(rank+1)^theta, exactly,
 * for any theta ≥ 0. n below 1 counts as 1, theta below 0 as 0.
 */
@final
export class Zipf {
  private cells: StaticArray<u8>;
  private mask: u64 = 0;
  private theta: f64;

  constructor(n: i64, theta: f64) {
    n = max<i64>(n, 1);
    if (!(theta >= 0)) theta = 0;
    this.theta = theta;
    // 64 ranks and, up to 2^63, fewer than 400 buckets.
    const most = 512;
    this.cells = new StaticArray<u8>(most * offsetof<Cell>());
    const weights = new StaticArray<f64>(most);
    let used = 0;
    for (let lo: i64 = 1; lo <= n && used < most; ) {
      let width: i64 = 1;
      if (lo > 64) width = max<i64>(1, min<i64>(lo / 8, n - lo + 1));
      const c = this.cell(used);
      c.lo = lo;
      c.width = width;
      c.sure = pow(<f64>lo / <f64>(lo + width - 1), theta);
      weights[used++] = <f64>width * pow(<f64>lo, -theta);
      if (lo > n - width) break;
      lo += width;
    }
    let size = 1;
    while (size < used) size *= 2;
    for (; used < size; used++) {
      const c = this.cell(used);
      c.lo = 1;
      c.width = 1;
      c.sure = 1;
    }
    this.mask = <u64>size - 1;
    let sum: f64 = 0;
    for (let i = 0; i < size; i++) sum += weights[i];
    const small: i32[] = [];
    const large: i32[] = [];
    for (let i = 0; i < size; i++) {
      weights[i] *= <f64>size / sum;
      if (weights[i] < 1) small.push(i);
      else large.push(i);
    }
    const full: u64 = 1 << 53;
    while (small.length && large.length) {
      const s = small.pop();
      const l = large[large.length - 1];
      const c = this.cell(s);
      c.keep = <u64>(weights[s] * <f64>full);
      c.alias = l;
      weights[l] += weights[s] - 1;
      if (weights[l] < 1) {
        large.pop();
        small.push(l);
      }
    }
    while (small.length || large.length) {
      const i = small.length ? small.pop() : large.pop();
      const c = this.cell(i);
      c.keep = full;
      c.alias = i;
    }
  }

  @inline
  private cell(i: u32): Cell {
    return changetype<Cell>(changetype<usize>(this.cells) + <usize>i * offsetof<Cell>());
  }

  /** Draws a rank. */
  @inline
  next(r: Rand): i64 {
    let rank = this.propose(r);
    while (rank < 0) rank = this.propose(r);
    return rank;
  }

  // A rank, or -1 when it was rejected.
  private propose(r: Rand): i64 {
    const x = r.u64();
    let c = this.cell(<u32>(x & this.mask));
    if (x >> 11 >= c.keep) c = this.cell(c.alias);
    if (c.width == 1) return c.lo - 1;
    const rank = c.lo + r.below(c.width);
    const u = r.unit();
    return u < c.sure || u < pow(<f64>c.lo / <f64>rank, this.theta) ? rank - 1 : -1;
  }
}

function divisor(a: u64, b: u64): u64 {
  while (b) {
    const rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/**
 * Maps ranks onto [0, n) one to one, so that neighbouring ranks lie far apart: a
 * skewed workload then touches the whole table instead of its first pages.
 */
@final
export class Scramble {
  private n: u64;
  private step: u64 = 0;
  private offset: u64 = 0;

  constructor(n: i64) {
    this.n = <u64>max<i64>(n, 1);
    if (this.n < 0x80000000) {
      this.step = <u64>(<f64>this.n * 0.6180339887498949) | 1;
      while (divisor(this.step, this.n) != 1) this.step += 2;
      this.step %= this.n;
      this.offset = mix(this.n) % this.n;
    }
  }

  /** The place of a rank in [0, n). From 2^31 on places may coincide. */
  @inline
  at(rank: i64): i64 {
    if (this.n < 0x80000000) return <i64>((<u64>rank * this.step + this.offset) % this.n);
    return <i64>(mix(<u64>rank) % this.n);
  }
}
