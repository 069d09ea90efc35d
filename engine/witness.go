package engine

import "math"

// Witness is what a load generator's process has noticed of its own lateness since it began to look: counts that only
// grow, so that who misses one second has it in the next.
type Witness struct {
	// RunNs and WaitNs are how long the process's threads ran and how long they waited for a processor although they
	// could have run, Slices how often they did. Known is false where the system does not tell.
	Known                 bool
	RunNs, WaitNs, Slices int64
	// Late counts by how much a thread was late that is to wake at equal distances.
	Late Lateness
	// StoppedNs adds up by how much it was late where that was much: nothing ran meanwhile.
	StoppedNs int64
	// Retransmits counts segments that the machine's TCP sent again, -1 where the system does not tell.
	Retransmits int64
}

// Lateness counts times by their length. Bucket i holds those up to LatenessBound(i) and above the one before; the last
// one holds all that is longer.
type Lateness [32]int64

// LatenessBound is the upper bound of a bucket in milliseconds: 0.1 ms, and half as much again in logarithm for each.
func LatenessBound(i int) float64 { return 0.1 * math.Pow(2, float64(i)/2) }

// Record counts a time in milliseconds.
func (l *Lateness) Record(ms float64) {
	i := 0
	if ms > LatenessBound(0) {
		i = min(int(math.Ceil(2*math.Log2(ms/LatenessBound(0))-1e-9)), len(l)-1)
	}
	l[i]++
}

// Minus is what was counted since o.
func (l Lateness) Minus(o Lateness) Lateness {
	for i := range l {
		l[i] = max(l[i]-o[i], 0)
	}
	return l
}

// Plus is the sum of both.
func (l Lateness) Plus(o Lateness) Lateness {
	for i := range l {
		l[i] += o[i]
	}
	return l
}

// Count is how many were counted.
func (l *Lateness) Count() (n int64) {
	for _, c := range l {
		n += c
	}
	return n
}

// Quantile is a time in milliseconds that at most the share 1 − q was longer than; 0 without any, and for what is in
// the first bucket, which says no more than that nothing was late.
func (l Lateness) Quantile(q float64) float64 {
	below, want := int64(0), q*float64(l.Count())
	for i, n := range l {
		if below += n; n > 0 && float64(below) >= want {
			if i == 0 {
				return 0
			}
			return LatenessBound(i)
		}
	}
	return 0
}

// Longest is the bound of the longest time that was counted, in milliseconds; 0 for what is in the first bucket.
func (l Lateness) Longest() float64 { return l.Quantile(1) }

// Mean is the mean time in milliseconds at most, with 0 for what is in the first bucket.
func (l Lateness) Mean() float64 {
	var total int64
	var sum float64
	for i, n := range l {
		total += n
		if i > 0 {
			sum += float64(n) * LatenessBound(i)
		}
	}
	if total == 0 {
		return 0
	}
	return sum / float64(total)
}

// Since is what happened since the earlier look o of the same process.
func (w Witness) Since(o Witness) Witness {
	d := Witness{Known: w.Known && o.Known, RunNs: max(w.RunNs-o.RunNs, 0), WaitNs: max(w.WaitNs-o.WaitNs, 0),
		Slices: max(w.Slices-o.Slices, 0), Late: w.Late.Minus(o.Late), StoppedNs: max(w.StoppedNs-o.StoppedNs, 0),
		Retransmits: -1}
	if w.Retransmits >= 0 && o.Retransmits >= 0 {
		d.Retransmits = max(w.Retransmits-o.Retransmits, 0)
	}
	return d
}

// Plus adds what another process noticed, or the same one later.
func (w Witness) Plus(o Witness) Witness {
	sum := Witness{Known: w.Known && o.Known, RunNs: w.RunNs + o.RunNs, WaitNs: w.WaitNs + o.WaitNs,
		Slices: w.Slices + o.Slices, Late: w.Late.Plus(o.Late), StoppedNs: w.StoppedNs + o.StoppedNs, Retransmits: -1}
	if w.Retransmits >= 0 && o.Retransmits >= 0 {
		sum.Retransmits = w.Retransmits + o.Retransmits
	}
	return sum
}

// WaitShare is the part of the time in which threads could have run that they waited for a processor, 0 where that is
// not known.
func (w Witness) WaitShare() float64 {
	if !w.Known || w.RunNs+w.WaitNs == 0 {
		return 0
	}
	return float64(w.WaitNs) / float64(w.RunNs+w.WaitNs)
}

// Waited is the part of a time in which the process was to do something that it was kept from it: that of its threads,
// or all of it where the system does not tell and the thread that is to wake is late.
func (w Witness) Waited() float64 {
	if !w.Known && w.Late.Mean() >= 1 {
		return 1
	}
	return w.WaitShare()
}

// Uncertainty says by how much percentiles may be too high, in milliseconds, because of the generator.
type Uncertainty struct{ P50, P95, P99 float64 }

// What threads wait before they run also where nothing else wants the processor, in milliseconds, and the part of the
// time below which they wait too little for any figure to show it.
const (
	wakesInMs = 0.01
	leastWait = 0.02
)

// Uncertainty judges what was noticed: an operation that ends while its thread waits for a processor is recorded late.
// The wait before each time that a thread runs says it of all, how late a thread is that is to wake of the tail;
// and of the time between the first byte of an answer and its record (decodeMs, the mean) the part in which threads
// waited is no time of the target's. A thread that is to wake is late on an idle machine too, as timers are: where the
// system tells how long threads waited, its lateness counts as far as they did. It is a pure function.
func (w Witness) Uncertainty(decodeMs float64) Uncertainty {
	wait, waiting := w.Late.Mean(), w.Waited()
	late := w.Late.Quantile
	if w.Known {
		wait = float64(w.WaitNs) / float64(max(w.Slices, 1)) / 1e6
		late = func(q float64) float64 {
			if waiting < leastWait {
				return 0
			}
			// Of waits with a mean at most the part 1 − q is longer than the mean ÷ (1 − q).
			return min(w.Late.Quantile(q), max(wait-wakesInMs, 0)/(1-q))
		}
	}
	at := func(q float64) float64 { return max(wait, late(q)) + waiting*decodeMs }
	return Uncertainty{at(0.5), at(0.95), at(0.99)}
}
