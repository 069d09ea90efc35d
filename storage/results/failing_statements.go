package results

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
)

// statementOutcomes tell of each statement, or of the transactions of a name, what ended when. In a mix a rare one may
// fail each time, and the figures of all hardly show it.
type statementOutcomes struct {
	from, to int64
	of       map[statementKey]*outcomes
	// apart is how many of them have a name, and last the last of these.
	apart int
	last  statementKey
}

// Of so many statements each is told apart, and the others by their kind; an hour has bins as short as those of all
// operations.
const (
	maxToldApart     = 100
	maxStatementBins = 3600 * 4
)

func newStatementOutcomes(from, to int64) statementOutcomes {
	return statementOutcomes{from: from, to: to, of: map[statementKey]*outcomes{}}
}

// inOrder are the keys of statements by kind and name.
func inOrder(a, b statementKey) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id))
}

// at finds the outcomes of a statement, or of its kind. Told apart are the first ones in order, and not those that came
// first: whoever reads a part of the record folds none of these, and no other one is left when the parts are merged.
func (s *statementOutcomes) at(key statementKey) *outcomes {
	if o := s.of[key]; o != nil {
		return o
	}
	if key.id != "" && s.apart == maxToldApart {
		if inOrder(key, s.last) > 0 {
			return s.at(statementKey{kind: key.kind})
		}
		s.foldLast()
	}
	o := newOutcomes(s.from, s.to, maxStatementBins)
	s.put(key, &o)
	return &o
}

func (s *statementOutcomes) put(key statementKey, o *outcomes) {
	s.of[key] = o
	if key.id == "" {
		return
	}
	if s.apart++; s.apart == 1 || inOrder(key, s.last) > 0 {
		s.last = key
	}
}

// foldLast adds the last of those that are told apart to its kind.
func (s *statementOutcomes) foldLast() {
	key, folded := s.last, s.of[s.last]
	delete(s.of, key)
	s.apart, s.last = s.apart-1, statementKey{}
	for other := range s.of {
		if other.id != "" && (s.last.id == "" || inOrder(other, s.last) > 0) {
			s.last = other
		}
	}
	kind := statementKey{kind: key.kind}
	if known := s.of[kind]; known == nil {
		s.put(kind, folded) // those that know it by its name are right
	} else {
		known.merge(folded)
		folded.into = known
	}
}

func (s *statementOutcomes) merge(o statementOutcomes) {
	for key, other := range o.of {
		if s.of[key] == nil && (key.id == "" || s.apart < maxToldApart) {
			s.put(key, other)
		} else {
			s.at(key).merge(other)
		}
	}
}

// outcomeTable finds the outcomes of a statement by the indexes that a row group has for its name and its kind.
type outcomeTable struct {
	all   *statementOutcomes
	ids   []string
	kinds []engine.Kind
	known []*outcomes
}

// outcomeTable is nil where the ends are not known.
func (e *endTimes) outcomeTable(ids []string, kinds []engine.Kind) *outcomeTable {
	if e == nil {
		return nil
	}
	return &outcomeTable{&e.statements, ids, kinds, make([]*outcomes, len(ids)*len(kinds))}
}

func (t *outcomeTable) of(id, kind int32) *outcomes {
	if t == nil {
		return nil
	}
	at := int(id)*len(t.kinds) + int(kind)
	if o := t.known[at]; o == nil || o.into != nil {
		t.known[at] = t.all.at(statementKey{id: t.ids[id], kind: t.kinds[kind]})
	}
	return t.known[at]
}

// failing are the times in which executions of a statement went on failing, without those that the times of all
// operations tell already.
func (s *statementOutcomes) failing(all []engine.FailingTime) (out []engine.FailingTime) {
	for _, key := range slices.SortedFunc(maps.Keys(s.of), inOrder) {
		for _, t := range s.of[key].stretches() {
			if len(all)+len(out) >= maxFailingTimes || toldBy(all, t) {
				continue
			}
			t.StatementID, t.Kind = key.id, &key.kind
			out = append(out, t)
		}
	}
	return out
}

// toldShare of a time of a statement is in times of all operations: they tell of it.
const toldShare = 0.8

func toldBy(all []engine.FailingTime, t engine.FailingTime) bool {
	told := 0.0
	for _, o := range all {
		later := o.From.Sub(t.From.Time).Seconds()
		told += max(min(t.Seconds, later+o.Seconds)-max(0, later), 0)
	}
	return told >= toldShare*t.Seconds
}

// stretches are the times in which over half failed, at any moment of the measurement and however few there were, if
// those are not what chance gives.
func (e *outcomes) stretches() (out []engine.FailingTime) {
	end := e.failingEnd()
	last, toTheEnd := e.failingAtEnd(end)
	ended, failed := e.within(binRange{0, len(e.ended)})
	rare := func(t engine.FailingTime) bool {
		// It may begin with any operation, and where some succeeded end behind any other: it is the best of so many.
		places := float64(ended)
		if t.Errors < t.Operations {
			places *= float64(t.Operations)
		}
		return places*chanceOf(t, ended, failed) < failChance
	}
	// All failed within that time and none without it: a few are enough.
	only := func(t engine.FailingTime) bool {
		return t.Errors == t.Operations && t.Errors == failed && ended-t.Operations >= failCountAll
	}
	if toTheEnd = toTheEnd && (only(last) || rare(last)); !toTheEnd {
		end.first = len(e.ended)
	}
	for _, b := range e.heaviest(end.first) {
		t, length := e.describeFailing(e.trim(b))
		if length < failHold || t.Errors < failCountAll || t.Errors < failCountFew && t.Errors < t.Operations {
			continue
		}
		if t.Errors > failCountAll && only(t) || rare(t) {
			out = append(out, t)
		}
	}
	if toTheEnd {
		out = append(out, last)
	}
	return out
}

// chanceOf is how likely as many failures are where operations fail as often as outside of that time.
func chanceOf(t engine.FailingTime, ended, failed int64) float64 {
	outside, failedOutside := ended-t.Operations, failed-t.Errors
	share := float64(failedOutside+1) / float64(outside+2)
	n, p := float64(t.Operations), 0.0
	if float64(t.Errors) <= n*share {
		return 1
	}
	logFactorial := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	for k := t.Errors; k <= t.Operations; k++ {
		x := float64(k)
		more := math.Exp(logFactorial(n) - logFactorial(x) - logFactorial(n-x) + x*math.Log(share) +
			(n-x)*math.Log1p(-share))
		if p += more; more <= p*1e-6 {
			break // the rest is less still
		}
	}
	return p
}

// heaviest are the stretches before a bin in which failures beyond half of what ended add up to the most: none can be
// made longer or shorter with more of them (Ruzzo and Tompa's maximal scoring subsequences).
func (e *outcomes) heaviest(before int) []binRange {
	type scored struct {
		binRange
		left, right float64 // the sum before the first bin, and that with the last one
	}
	var found []scored
	sum := 0.0
	for i := range before {
		score := float64(e.failed[i]) - failShare*float64(e.ended[i])
		if score <= 0 {
			sum += score
			continue
		}
		next := scored{binRange{i, i + 1}, sum, sum + score}
		sum += score
		for {
			j := len(found) - 1
			for j >= 0 && found[j].left >= next.left {
				j--
			}
			if j < 0 || found[j].right >= next.right {
				break
			}
			next.first, next.left = found[j].first, found[j].left
			found = found[:j]
		}
		found = append(found, next)
	}
	out := make([]binRange, len(found))
	for i, f := range found {
		out[i] = f.binRange
	}
	return out
}
