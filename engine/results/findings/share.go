package findings

import "math"

// pair is what went to a cause, and the client's time, of one second.
type pair struct{ part, whole float64 }

// share is a ratio of sums with its 95 % interval.
type share struct{ value, low, high float64 }

// maxBlocks is how many blocks an interval is made of at most: neighbouring seconds are alike, so they are together.
const maxBlocks = 30

// shareOf is what part of the whole went to a cause. Its interval is that of a ratio of sums over blocks of neighbours;
// a single block has none.
func shareOf(list []pair) share {
	var part, whole float64
	for _, p := range list {
		part, whole = part+p.part, whole+p.whole
	}
	if whole <= 0 {
		return share{high: 1}
	}
	r := part / whole
	size := max(1, (len(list)+maxBlocks-1)/maxBlocks)
	var sum float64
	blocks := 0
	for i := 0; i < len(list); i += size {
		var a, b float64
		for _, p := range list[i:min(i+size, len(list))] {
			a, b = a+p.part, b+p.whole
		}
		sum += (a - r*b) * (a - r*b)
		blocks++
	}
	if blocks < 2 {
		return share{r, 0, 1}
	}
	n := float64(blocks)
	half := student(blocks-1) * math.Sqrt(n/(n-1)*sum) / whole
	return share{r, max(0, r-half), min(1, r+half)}
}

// student is the factor of a 95 % interval of so many degrees of freedom.
func student(freedom int) float64 {
	table := [...]float64{
		12.706,
		4.303,
		3.182,
		2.776,
		2.571,
		2.447,
		2.365,
		2.306,
		2.262,
		2.228,
		2.201,
		2.179,
		2.160,
		2.145,
		2.131,
		2.120,
		2.110,
		2.101,
		2.093,
		2.086,
	}
	if freedom <= len(table) {
		return table[freedom-1]
	}
	return 2.05
}

// above reports whether one share is above another by more than so much, as far as both intervals tell.
func above(a, b share, by float64) bool {
	down, up := a.value-a.low, b.high-b.value
	return a.value-b.value-math.Sqrt(down*down+up*up) > by
}
