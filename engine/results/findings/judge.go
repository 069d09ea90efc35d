package findings

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// ClientSecond is one second of the client, or one slot of the grid: how long operations were in flight, all together,
// how long of that they waited for a connection or for the generator, and how many ended.
type ClientSecond struct{ InFlight, Waiting, Ended float64 }

// Input is what is known beside what a collector saw.
type Input struct {
	// Client has the slots of the collector's grid.
	Client []ClientSecond
	// From and To bound what is judged: the measurement.
	From, To time.Time
	// Processors are those of the server's machine, 0 where that is not known.
	Processors int
}

// Verdict is what a run's seconds say.
type Verdict struct {
	Findings []engine.Finding
	Time     *engine.ServerTime
	// Slow says of each slot whether operations took longer in it than in healthy ones.
	Slow []bool
}

const (
	// least is the share of the client's time below which nothing is a finding.
	least = 0.05
	// healthyRatio and slowRatio are how long operations take against the run's best seconds. The best are the tenth
	// part that is fastest.
	healthyRatio, slowRatio, bestPart = 1.25, 1.6, 0.1
	// minHealthy and minSlow slots make a comparison.
	minHealthy, minSlow = 3, 2
)

// judge holds what is made of an input.
type judge struct {
	c    *Collector
	in   Input
	used []int // slots of the measurement that were seen
	slow []bool
	// healthy are slots whose operations were as fast as the run's best.
	healthy []bool
	causes  []map[cause]float64 // by slot, in seconds of the client
	// guessed is how much of causes is of counters of all who use the database, and what others may have had of it.
	guessed map[cause]guess
}

// guess is what counters of everybody give to a cause: the run's part by its sessions, and that of others.
type guess struct{ ours, others float64 }

// Judge says what made operations slow.
func (c *Collector) Judge(in Input) Verdict {
	j := &judge{c: c, in: in, slow: make([]bool, len(c.slots)), healthy: make([]bool, len(c.slots)),
		causes: make([]map[cause]float64, len(c.slots)), guessed: map[cause]guess{}}
	v := Verdict{Slow: j.slow}
	for len(in.Client) < len(c.slots) {
		in.Client = append(in.Client, ClientSecond{})
	}
	j.in.Client = in.Client
	unseen := 0
	for i := range c.slots {
		at := c.from.Add(time.Duration(i) * c.step)
		if at.Before(in.From) || at.Add(c.step).After(in.To) {
			continue
		}
		if c.slots[i].looks == 0 {
			unseen++
			continue
		}
		j.used = append(j.used, i)
	}
	if len(j.used) > 0 {
		j.pace()
		for _, i := range j.used {
			j.causes[i] = j.timeOf(i)
		}
		v.Time = j.identity(unseen)
		v.Findings = j.findings()
	}
	found := slices.ContainsFunc(v.Findings, func(f engine.Finding) bool { return f.Level == engine.LevelFinding })
	v.Findings = append(v.Findings, j.notes(found, v.Time)...)
	// That nothing stands out comes before what is only worth knowing.
	sort.SliceStable(v.Findings, func(a, b int) bool {
		return v.Findings[a].Rule == RuleNothing && v.Findings[b].Rule != RuleNothing &&
			v.Findings[b].Level == engine.LevelNote
	})
	return v
}

// pace tells slow seconds from healthy ones: by how long an operation is under way, which is what is in flight over
// what ends.
func (j *judge) pace() {
	took := make([]float64, 0, len(j.used))
	of := func(i int) float64 {
		s := j.in.Client[i]
		return s.InFlight / max(s.Ended, 0.5)
	}
	for _, i := range j.used {
		if j.in.Client[i].InFlight > 0 {
			took = append(took, of(i))
		}
	}
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	best := took[int(bestPart*float64(len(took)))]
	slow, healthy := 0, 0
	for _, i := range j.used {
		if j.in.Client[i].InFlight <= 0 {
			continue
		}
		switch w := of(i); {
		case w > slowRatio*best:
			j.slow[i] = true
			slow++
		case w <= healthyRatio*best:
			j.healthy[i] = true
			healthy++
		}
	}
	if slow < minSlow || healthy < minHealthy {
		clear(j.slow)
		clear(j.healthy)
	}
}

// timeOf is what the run's time in the server went to in a slot, in seconds of the client. Counters name the cause of
// parts of the time with the processor and with reading.
func (j *judge) timeOf(i int) map[cause]float64 {
	s := &j.c.slots[i]
	step := j.c.step.Seconds()
	scale := step / float64(s.looks)
	out := make(map[cause]float64, len(s.causes)+2)
	for k, v := range s.causes {
		out[k] = v * scale
	}
	move := func(from cause, to cause, amount float64) {
		amount = min(amount, out[from])
		if amount > 0 {
			out[from] -= amount
			out[to] += amount
		}
	}
	work, read := cause{rule: ruleWork}, cause{rule: RuleCache}
	// What counters of all who use the database say is the run's as far as the sessions that work are.
	part := s.part()
	guessed := func(from, to cause, amount float64) {
		before := out[to]
		move(from, to, amount*part)
		moved := out[to] - before
		g := j.guessed[to]
		j.guessed[to] = guess{g.ours + moved, g.others + moved*(1-part)/part}
	}
	// A plan that has changed explains its statement's time from then on.
	at := j.c.from.Add(time.Duration(i) * j.c.step)
	for statement, when := range j.c.plans {
		if own := s.byStatement[statement] * scale; own > 0 && !at.Before(when.Truncate(time.Second)) {
			moved := min(own, out[work])
			move(work, cause{RulePlan, statement}, own)
			move(read, cause{RulePlan, statement}, own-moved)
		}
	}
	for _, key := range sortedKeys(s.rates) {
		switch amount := s.rates[key]; key.name {
		case plugin.CounterTableScanRows:
			scans := s.rates[counterKey{plugin.CounterTableScans, key.object}]
			if scans > 0 && amount/scans >= scannedRows {
				cost := amount * scanSeconds
				moved := min(cost, out[work])
				guessed(work, cause{RuleMissingIndex, key.object}, cost)
				guessed(read, cause{RuleMissingIndex, key.object}, cost-moved)
			}
		case plugin.CounterTempBytes:
			guessed(work, cause{rule: RuleSpill}, amount*spillSeconds)
		case plugin.CounterJIT:
			move(work, cause{rule: RuleJIT}, amount/1e3)
		case plugin.CounterSessions:
			// The run's own are known by their names: who keeps its sessions has opened none.
			if amount *= s.churn(); amount/step >= manySessions {
				move(work, cause{rule: RuleConnectionStorm}, amount*sessionSeconds)
			}
		case plugin.CounterVacuuming:
			for _, from := range []cause{read, {rule: RuleWrite}} {
				move(from, cause{RuleVacuum, key.object}, out[from])
			}
		}
	}
	j.checkpoints(i, out, move)
	if n := float64(j.in.Processors); n > 0 {
		active := (s.ours[engine.WaitCPU] + s.others[engine.WaitCPU]) / float64(s.looks)
		if active > n {
			move(work, cause{rule: RuleProcessors}, out[work]*(active-n)/active)
		}
	}
	return out
}

// What counters cost by experience, so that they name the cause of no more time than they can have taken: a row that is
// read in a scan, a byte that goes to a temporary file and back, a session that is begun.
const (
	scanSeconds, spillSeconds, sessionSeconds = 100e-9, 10e-9, 4e-3
	// scannedRows a scan make it one that an index would spare; manySessions a second make a storm.
	scannedRows, manySessions = 1000, 25
	// checkpointReach is for how long after a requested checkpoint writes are its.
	checkpointReach = 30
)

// checkpoints gives waits for the log and for writes to checkpoints that were requested close to each other.
func (j *judge) checkpoints(i int, out map[cause]float64, move func(from, to cause, amount float64)) {
	requested := 0.0
	reach := max(1, int(checkpointReach/j.c.step.Seconds()))
	for k := max(0, i-reach); k <= min(i+reach, len(j.c.slots)-1); k++ {
		requested += j.c.slots[k].rates[counterKey{plugin.CounterRequested, ""}]
	}
	images := j.c.slots[i].rates[counterKey{plugin.CounterLogPageImages, ""}]
	if requested >= 1.5 && images/j.c.step.Seconds() >= 100 {
		for _, from := range []cause{{rule: RuleCommit}, {rule: RuleWrite}} {
			move(from, cause{rule: RuleCheckpoint}, out[from])
		}
	}
}

func sortedKeys(m map[counterKey]float64) []counterKey {
	keys := make([]counterKey, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(a, b int) bool {
		return cmp.Or(cmp.Compare(keys[a].name, keys[b].name), cmp.Compare(keys[a].object, keys[b].object)) < 0
	})
	return keys
}

// identity says where the client's time went. What the server and the network do not account for is the remainder.
func (j *judge) identity(unseen int) *engine.ServerTime {
	t := &engine.ServerTime{
		Classes: map[engine.WaitClass]float64{},
		Seconds: int(float64(len(j.used)) * j.c.step.Seconds()),
		Unseen:  int(float64(unseen) * j.c.step.Seconds()),
		Looks:   j.c.looks,
		LookMs:  j.c.tookMs(),
	}
	var block, off float64
	stretch := max(1, int(5/j.c.step.Seconds()))
	for n, i := range j.used {
		s, cl := &j.c.slots[i], j.in.Client[i]
		scale := j.c.step.Seconds() / float64(s.looks)
		server := 0.0
		for k, v := range s.ours {
			t.Classes[k] += v * scale
			server += v * scale
		}
		// A session that does nothing while its client's operation is under way: the answer, or the next statement, is
		// on its way.
		between := max(0, min(cl.InFlight-cl.Waiting-server, s.idle*scale))
		rest := cl.InFlight - cl.Waiting - server - between
		t.InFlight, t.Waiting, t.Network, t.Remainder = t.InFlight+cl.InFlight, t.Waiting+cl.Waiting, t.Network+between,
			t.Remainder+rest
		block += rest
		if (n+1)%stretch == 0 || n == len(j.used)-1 {
			off += math.Abs(block)
			block = 0
		}
	}
	if t.InFlight > 0 {
		t.RemainderPct = 100 * off / t.InFlight
	}
	if n := len(j.used); n > 0 {
		t.LooksPerSecond = float64(j.c.slots[j.used[n-1]].looks) / j.c.step.Seconds()
	}
	return t
}

// pairs are the client's seconds of some slots with what went to a cause.
func (j *judge) pairs(k cause, of []bool) (list []pair) {
	for _, i := range j.used {
		if of == nil || of[i] {
			list = append(list, pair{j.causes[i][k], j.in.Client[i].InFlight})
		}
	}
	return list
}

// findings are the causes that matter, those first that cost most.
func (j *judge) findings() []engine.Finding {
	totals := map[cause]float64{}
	for _, i := range j.used {
		for k, v := range j.causes[i] {
			if k.rule != ruleWork {
				totals[k] += v
			}
		}
	}
	uneven := slices.Contains(j.slow, true)
	var list []engine.Finding
	keys := make([]cause, 0, len(totals))
	for k := range totals {
		keys = append(keys, k)
	}
	// The rest costs too little to be told, and each takes a pass over all slots.
	sort.Slice(keys, func(a, b int) bool {
		x, y := keys[a], keys[b]
		return cmp.Or(cmp.Compare(totals[y], totals[x]), cmp.Compare(x.rule, y.rule), cmp.Compare(x.who, y.who)) < 0
	})
	for _, k := range keys[:min(len(keys), maxJudged)] {
		if f := j.finding(k, uneven); f != nil {
			list = append(list, *f)
		}
	}
	sort.Slice(list, func(a, b int) bool {
		x, y := &list[a], &list[b]
		if x.Level != y.Level {
			return x.Level == engine.LevelFinding
		}
		return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Text, y.Text)) < 0
	})
	return list[:min(len(list), maxFindings)]
}

// maxFindings bounds what is told, maxJudged of how many causes it is chosen.
const maxFindings, maxJudged = 20, 100

// finding judges one cause; nil when it costs too little to be told.
func (j *judge) finding(k cause, uneven bool) *engine.Finding {
	whole := shareOf(j.pairs(k, nil))
	level, got := engine.LevelNote, whole
	from, to := 0, len(j.used)-1
	if uneven {
		in, out := shareOf(j.pairs(k, j.slow)), shareOf(j.pairs(k, j.healthy))
		if in.low > least && above(in, out, least) {
			level, got = engine.LevelFinding, in
			from, to = j.interval(k, out.value)
		} else if whole.low <= least {
			return nil
		}
	}
	if level == engine.LevelNote {
		if whole.low <= least {
			return nil
		}
		if whole.low > evenShare(k.rule) && (k.rule != RuleCommit || j.perOperation(k) > slowCommit) {
			level = engine.LevelFinding
		}
	}
	unsure := level == engine.LevelFinding && j.unsure(k)
	if unsure {
		level = engine.LevelNote
	}
	seconds := 0.0
	for _, i := range j.used[from : to+1] {
		seconds += j.causes[i][k]
	}
	f := j.describe(k, got)
	if unsure {
		f.Text += " Others worked in the database at the same time, so it may be theirs."
	}
	f.Rule, f.Level, f.Seconds = k.rule, level, seconds
	f.Share, f.ShareLow, f.ShareHigh = rounded(got.value), rounded(got.low), rounded(got.high)
	at := func(n int) time.Time { return j.c.from.Add(time.Duration(j.used[n]) * j.c.step) }
	f.From, f.To = engine.At(at(from)), engine.At(at(to).Add(j.c.step))
	if f.Try == "" {
		f.Try = advice[k.rule]
	}
	if own := j.c.facts.Advice[k.rule]; own != "" {
		f.Try = own
	}
	return &f
}

// unsure reports whether a cause rests on counters of which others may have had a good part.
func (j *judge) unsure(k cause) bool {
	g, total := j.guessed[k], 0.0
	for _, i := range j.used {
		total += j.causes[i][k]
	}
	return g.ours > total/2 && g.others > othersPart*(g.ours+g.others)
}

// othersPart of the sessions that work may be others' before counters of everybody are not the run's.
const othersPart = 0.1

// part is how much of the sessions that work in the server are the run's.
func (s *slot) part() float64 {
	var ours, others float64
	for _, class := range []engine.WaitClass{engine.WaitCPU, engine.WaitRead, engine.WaitWrite, engine.WaitSpill} {
		ours, others = ours+s.ours[class], others+s.others[class]
	}
	if others == 0 {
		return 1
	}
	return max(ours, 0.5) / (max(ours, 0.5) + others)
}

// churn is how much of the run's sessions that were seen was not there before.
func (s *slot) churn() float64 {
	total := 0.0
	for _, v := range s.ours {
		total += v
	}
	return min(1, s.fresh/max(1, total))
}

func rounded(v float64) *float64 {
	v = math.Round(1e4*v) / 1e4
	return &v
}

// slowCommit is how long a COMMIT waits, per operation, before a run that is even is called slow for it.
const slowCommit = 5e-3

// perOperation is what a cause took of each operation that ended.
func (j *judge) perOperation(k cause) float64 {
	var took, ended float64
	for _, i := range j.used {
		took, ended = took+j.causes[i][k], ended+j.in.Client[i].Ended
	}
	return took / max(ended, 1)
}

// evenShare is the share above which a cause is a finding in a run that is as slow in all its seconds.
func evenShare(rule string) float64 {
	switch rule {
	case RuleIdleInTransaction, RuleTableLock, RuleForeignLock, RuleMaintenanceLock, RuleConnectionStorm:
		return least
	case RuleMissingIndex, RuleSpill, RuleJIT, RulePlan:
		return 0.1 // what is evident in counters or plans needs no more
	case RuleHotRow, RuleReplica, RuleCheckpoint, RuleLock:
		return 0.2
	case RuleCache, RuleLatch, RuleVacuum:
		return 0.3
	case RuleCommit, RuleProcessors:
		return 0.5
	}
	return math.Inf(1)
}

// interval is from the first slow second of a cause to the last, of the longest stretch without a pause of five
// seconds.
func (j *judge) interval(k cause, usual float64) (from, to int) {
	pause := max(1, int(5/j.c.step.Seconds()))
	var best, sum float64
	begin, last := -1, -1
	from, to = 0, len(j.used)-1
	for n, i := range j.used {
		if whole := j.in.Client[i].InFlight; !j.slow[i] || whole <= 0 || j.causes[i][k]/whole <= usual+least {
			continue
		}
		if begin < 0 || n-last > pause {
			begin, sum = n, 0
		}
		sum += j.causes[i][k]
		last = n
		if sum > best {
			best, from, to = sum, begin, last
		}
	}
	return from, to
}
