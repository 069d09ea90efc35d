package main

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
)

// fnv is YCSB's Utils.fnvhash64: FNV-1a over the eight bytes of a number, least
// significant first, without its sign.
func fnv(n uint64) uint64 {
	const offset, prime = 0xcbf29ce484222325, 1099511628211
	h := (offset ^ n&0xff) * prime
	h = (h ^ n>>8&0xff) * prime
	h = (h ^ n>>16&0xff) * prime
	h = (h ^ n>>24&0xff) * prime
	h = (h ^ n>>32&0xff) * prime
	h = (h ^ n>>40&0xff) * prime
	h = (h ^ n>>48&0xff) * prime
	h = (h ^ n>>56) * prime
	sign := uint64(int64(h) >> 63)
	return (h ^ sign) - sign
}

// keyPrefix begins every key.
const keyPrefix = "user"

// putKey writes the key of a record number, as YCSB's buildKeyName does.
func putKey(b *sdk.Batch, number uint64, insertOrder int, padding int) {
	if insertOrder != ordered {
		number = fnv(number)
	}
	width := max(decimals(number), padding)
	s := b.TextSpace(len(keyPrefix) + width)
	copy(s, keyPrefix)
	putDigits(s[len(keyPrefix):], number)
}

var powers = [...]uint64{1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
	1e18, 1e19}

// decimals is how many digits n has.
func decimals(n uint64) int {
	// 1233/4096 is a little above log10(2).
	d := bits.Len64(n|1) * 1233 >> 12
	if n|1 >= powers[d] {
		d++
	}
	return d
}

// putDigits fills s with the last digits of n, zeros in front. Eight digits a
// division: a guest divides 64 bits slowly, and a key has 19 digits.
func putDigits(s []byte, n uint64) {
	for len(s) >= 8 {
		q := n / 100_000_000
		eight(s[len(s)-8:], n-q*100_000_000)
		n = q
		s = s[:len(s)-8]
	}
	for i := len(s) - 1; i >= 0; i-- {
		q := n * 52429 >> 19 // n/10 of n below 43 699: at most four digits of 19 are left
		if n >= 43_699 {
			q = n / 10
		}
		s[i] = byte('0' + n - q*10)
		n = q
	}
}

// eight writes eight digits: halves, pairs and single digits are parted all at once.
func eight(s []byte, n uint64) {
	_ = s[7]
	hi := n * 109951163 >> 40 // n/10000 of n below 10^8
	x := hi | (n-hi*10_000)<<32
	pairs := x * 10_486 >> 20 & 0x7f_0000_007f // /100 of each half
	x = pairs | (x-pairs*100)<<16
	tens := x * 103 >> 10 & 0x0f_000f_000f_000f // /10 of each pair
	x = tens | (x-tens*10)<<8
	x |= 0x3030303030303030
	s[0], s[1], s[2], s[3] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
	s[4], s[5], s[6], s[7] = byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56)
}

const theta = 0.99

// zipf is the generator of Gray and others that YCSB uses ("Quickly generating
// billion-record synthetic databases", SIGMOD 1994): an approximation whose first
// two ranks are exact. YCSB's frequencies are those of the approximation.
type zipf struct {
	// items of eta, and the count that zetan sums up to, as in YCSB: when the
	// count grows, zetan follows and the items of eta do not.
	items            float64
	count            int64
	zetan, eta, half float64
}

func newZipf(items int64, zetan float64) zipf {
	z := zipf{items: float64(items), count: items, zetan: zetan, half: 1 + math.Pow(0.5, theta)}
	z.setEta()
	return z
}

func (z *zipf) setEta() {
	z.eta = (1 - math.Pow(2/z.items, 1-theta)) / (1 - z.half/z.zetan)
}

// grow makes room for ranks up to count.
func (z *zipf) grow(count int64) {
	if count <= z.count {
		return
	}
	for z.count < count {
		z.count++
		z.zetan += math.Pow(float64(z.count), -theta)
	}
	z.setEta()
}

// rank turns a number of [0, 1) into a rank below the count.
func (z *zipf) rank(u float64) int64 {
	uz := u * z.zetan
	if uz < 1 {
		return 0
	}
	if uz < z.half {
		return 1
	}
	// The power is 1/(1-theta) = 100, as 64 + 32 + 4.
	x := z.eta*u - z.eta + 1
	x *= x
	x *= x
	x4 := x
	x *= x
	x *= x
	x *= x
	x32 := x
	return int64(float64(z.count) * (x * x * x32 * x4))
}

// zeta is the sum of i^-theta for i from 1 to n: the first terms one by one, the
// rest by the Euler-Maclaurin formula, whose error is below 1e-12.
func zeta(n int64) float64 {
	const exact = 1000
	sum := 0.0
	for i := int64(1); i <= min(n, exact); i++ {
		sum += math.Pow(float64(i), -theta)
	}
	if n <= exact {
		return sum
	}
	a, b := float64(exact), float64(n)
	fa, fb := math.Pow(a, -theta), math.Pow(b, -theta)
	return sum + (math.Pow(b, 1-theta)-math.Pow(a, 1-theta))/(1-theta) + (fb-fa)/2 + theta*(fa/a-fb/b)/12
}

// The scrambled zipfian generator draws from so many items whatever the table
// has, and hashes the rank onto the table.
const (
	scrambledItems = 10_000_000_000
	scrambledZeta  = 26.46902820178302
)

// chooser chooses records by place: places below base are the records loaded,
// from base on those that this slot has inserted.
type chooser struct {
	distribution int
	base         int64
	zipf         zipf
	span         uint64 // of the scrambled zipfian generator
	hot          int64
	hotShare     float64
	scale        float64 // mean of the exponential distribution, in records
	next         *gen.Sequential
}

func newChooser(o *options, req *sdk.OpenRequest, base int64) chooser {
	c := chooser{distribution: o.distribution, base: base}
	switch o.distribution {
	case zipfian:
		// Both bounds are inclusive in YCSB, hence the 1 in either count.
		c.zipf = newZipf(scrambledItems+1, scrambledZeta)
		c.span = uint64(base) + uint64(float64(o.operations)*o.mix[opInsert]*2) + 1
	case latest:
		c.zipf = newZipf(max(base-1, 1), zeta(max(base-1, 1)))
	case hotspot:
		c.hot, c.hotShare = int64(float64(base)*o.hotData), o.hotOperations
		if c.hot == 0 {
			c.hotShare = 0
		}
		if c.hot == base {
			c.hotShare = 1
		}
	case exponential:
		// 95 % of the operations go to the last 6/7 of the records, by YCSB's defaults.
		c.scale = float64(base) * 0.8571428571 / -math.Log(1-0.95)
	case sequential:
		c.next = gen.NewSequential(base, base/int64(req.KeySlots)*int64(req.KeySlot))
	}
	return c
}

// maxDraws bounds how often a draw that names no record is repeated.
const maxDraws = 64

// place draws a record among the loaded ones and the visible inserts of this slot.
func (c *chooser) place(r *gen.Rand, visible int64) int64 {
	last := c.base + visible - 1
	switch c.distribution {
	case zipfian:
		for range maxDraws {
			if p := int64(fnv(uint64(c.zipf.rank(r.Float64()))) % c.span); p <= last {
				return p
			}
		}
	case latest:
		if last < 1 {
			return max(last, 0)
		}
		c.zipf.grow(last)
		return last - min(c.zipf.rank(r.Float64()), last)
	case hotspot:
		if r.Float64() < c.hotShare {
			return r.Int64n(c.hot)
		}
		return c.hot + r.Int64n(c.base-c.hot)
	case exponential:
		for range maxDraws {
			// 1-u is never 0.
			if back := -math.Log(1-r.Float64()) * c.scale; back < float64(last+1) {
				return last - int64(back)
			}
		}
	case sequential:
		return c.next.Next()
	}
	return r.Int64n(max(last+1, 1))
}

// maxCompared bounds the records whose numbers are hashed to find out which of them a table has.
const maxCompared = 20_000_000

// population is how many records there are to choose among: those with the numbers 0 and up, or, where held is not nil,
// the keys that the host holds. Runs that insert leave records whose numbers nobody knows.
func (o *options) population(p *plan, pools []sdk.Pool) (base int64, held *sdk.KeyList) {
	rows := p.table.Rows
	if o.records > 0 {
		return o.records, nil
	}
	for i := range pools {
		pool := &pools[i]
		if pool.Table != p.table.Name && len(pools) > 1 {
			continue
		}
		loaded, others := o.loaded(p, pool, rows)
		if !others || loaded == 0 { // if none is the workload's, checkKeys says what is wrong
			continue
		}
		if p.keyPart = pool.Keys.Column(p.table.Key[0]); p.keyPart >= 0 && pool.Keys.Count > 0 &&
			pool.Keys.Count >= rows-rows/100 {
			return pool.Keys.Count, &pool.Keys
		}
		return loaded, nil
	}
	return rows, nil
}

// loaded looks among the sampled records for those with numbers below rows: how many there are, by the last one, and
// whether there are others besides.
func (o *options) loaded(p *plan, pool *sdk.Pool, rows int64) (count int64, others bool) {
	column := -1
	for i, name := range pool.Columns {
		if name == p.table.Key[0] {
			column = i
		}
	}
	if column < 0 || rows > maxCompared && o.insertOrder != ordered {
		return 0, false
	}
	wanted := map[uint64]bool{}
	for i := range pool.Rows.Len() {
		n, err := strconv.ParseUint(strings.TrimPrefix(pool.Rows.At(i).At(column).Str(), keyPrefix), 10, 64)
		switch {
		case err != nil:
			others = true
		case o.insertOrder != ordered:
			wanted[n] = true
		case n < uint64(rows):
			count = max(count, int64(n)+1)
		default:
			others = true
		}
	}
	for n := int64(0); n < rows && len(wanted) > 0; n++ {
		if h := fnv(uint64(n)); wanted[h] {
			delete(wanted, h)
			count = n + 1
		}
	}
	return count, others || len(wanted) > 0
}

// checkKeys compares sampled keys with those that the options make.
func checkKeys(p *plan, o *options, pools []sdk.Pool) error {
	column := -1
	var rows sdk.Pool
	for _, pool := range pools {
		if pool.Table != p.table.Name && len(pools) > 1 {
			continue
		}
		for i, name := range pool.Columns {
			if name == p.table.Key[0] {
				column, rows = i, pool
			}
		}
	}
	if column < 0 {
		return nil
	}
	const looked = 1000
	var foreign, long, short int
	var example string
	n := min(rows.Rows.Len(), looked)
	for i := range n {
		key := rows.Rows.At(i).At(column).Str()
		digits := strings.TrimPrefix(key, keyPrefix)
		bare := strings.TrimLeft(digits, "0")
		switch {
		case digits == key || strings.Trim(digits, "0123456789") != "" || digits == "" || len(digits) > len(bare) &&
			len(digits) != int(o.padding) && bare != "":
			foreign++
			example = key
		case len(bare) >= 14:
			long++
			if o.insertOrder == ordered {
				example = key
			}
		default:
			short++
			if o.insertOrder != ordered {
				example = key
			}
			if len(digits) < int(o.padding) {
				foreign++
				example = key
			}
		}
	}
	wrong := "are not those that insert_order: " + insertOrders[o.insertOrder] +
		" and these parameters make: set insert_order and zero_padding as the table was loaded"
	if o.insertOrder == ordered && long > n/2 || o.insertOrder != ordered && short > n/2 || foreign > n/2 {
		return &keyError{p.name() + " has keys such as " + example + ", which " + wrong}
	}
	return nil
}

type keyError struct{ message string }

func (e *keyError) Error() string { return e.message }
