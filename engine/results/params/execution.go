package params

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/results/executions"
)

// Why an execution was kept.
const (
	Failed = "failed"
	Slow   = "slow"
)

// KeptExecution is one whose parameters were kept. It is found in the record by worker, connection, seq and position.
type KeptExecution struct {
	Why          string       `json:"why" enum:"failed,slow"`
	WorkerID     string       `json:"worker_id"`
	ConnectionID uint32       `json:"connection_id"`
	Seq          uint32       `json:"seq" doc:"The number of the execution on its connection, from 0."`
	Position     int32        `json:"position" doc:"0 for an execution; statements inside a transaction are numbered from 1."`
	Retries      int32        `json:"retries"`
	Phase        engine.Phase `json:"phase" enum:"WARMUP,MEASUREMENT"`
	Kind         engine.Kind  `json:"kind"`
	StatementID  string       `json:"statement_id"`
	StartedAt    engine.Time  `json:"started_at"`
	EndedAt      engine.Time  `json:"ended_at"`
	ServiceMs    float64      `json:"service_ms" doc:"How long the database took. The slowest are chosen by it, without the time that an execution waited before."`
	AppElapsedMs float64      `json:"app_elapsed_ms" doc:"The latency; at a rate from when it was due."`
	ErrorClass   string       `json:"error_class"`
	ErrorCode    string       `json:"error_code"`
	ErrorMessage string       `json:"error_message" doc:"Without the values in it, unless values are shown."`
	Calls        []KeptCall   `json:"calls" nullable:"false" doc:"The statements with their parameters: one, or those of a transaction as they were sent."`
	CallsLeftOut int          `json:"calls_left_out" doc:"How many further statements of the transaction were not kept."`
}

// KeptCall is a statement as it was sent.
type KeptCall struct {
	StatementID   string      `json:"statement_id"`
	Position      int32       `json:"position" doc:"Within the transaction, from 1 (BEGIN); else 0."`
	SQL           string      `json:"sql" doc:"The statement's text, as it was frozen for the run."`
	Values        []KeptValue `json:"values" nullable:"false"`
	ValuesLeftOut int         `json:"values_left_out" doc:"How many further parameters were not kept."`
}

// KeptValue is what a parameter of a statement was.
type KeptValue struct {
	Name string `json:"name" doc:"As the workload names it; may be empty."`
	// Parameters are the numbers, from 1, that the value has in the statement's text.
	Parameters []int  `json:"parameters" nullable:"false" doc:"The parameters in the statement's text that take it, from 1."`
	Type       string `json:"type" enum:"i64,f64,text,bytes,bool,timestamp,ref,null" doc:"ref is a column of an earlier answer of the transaction."`
	Length     int64  `json:"length" doc:"Of a text in bytes, all of it; else 0."`
	// Text is nil where it is masked, and for NULL.
	Text *string `json:"text" doc:"The value; null where it is masked, and for NULL. Bytes are hexadecimal."`
	Cut  bool    `json:"cut" doc:"Of a long text only the beginning was kept."`
}

// Mask takes the values off, also those that the database quotes in its message.
func (e *KeptExecution) Mask() {
	e.ErrorMessage = executions.Mask(e.ErrorMessage)
	for i := range e.Calls {
		for j := range e.Calls[i].Values {
			if v := &e.Calls[i].Values[j]; v.Type != string(plugin.TypeRef) {
				v.Text, v.Cut = nil, false
			}
		}
	}
}

// Samples lists what a keeper has kept, of a run worker; left is how many errors and executions it did not keep for
// want of room.
func (k *Sampler) Samples(workerID string) (kept []KeptExecution, left int64) {
	if k == nil {
		return nil, 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.errors {
		for _, e := range m.entries {
			kept = append(kept, k.sample(workerID, Failed, e))
		}
	}
	for i := range k.slow {
		for _, e := range k.slow[i].entries {
			kept = append(kept, k.sample(workerID, Slow, e))
		}
	}
	k.changed = false
	slices.SortFunc(kept, compareKept)
	return kept, k.leftOut
}

// Changed reports whether something was kept since the last call of Kept.
func (k *Sampler) Changed() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changed
}

func (k *Sampler) sample(workerID, why string, e *entry) KeptExecution {
	r := &e.record
	phase := engine.PhaseMeasurement
	if r.Warmup {
		phase = engine.PhaseWarmup
	}
	out := KeptExecution{Why: why, WorkerID: workerID, ConnectionID: r.ConnectionID, Seq: r.Seq,
		Position: int32(r.Position), Retries: int32(r.Retries), Phase: phase, Kind: r.Kind, StatementID: k.statementID(r),
		StartedAt: engine.At(time.Unix(0, r.StartedAt)), EndedAt: engine.At(time.Unix(0, r.DueAt+r.Elapsed)),
		ServiceMs: float64(serviceTime(r)) / 1e6, AppElapsedMs: float64(r.Elapsed) / 1e6, ErrorClass: string(e.err.Class),
		ErrorCode: e.err.Code, ErrorMessage: e.err.Message,
		Calls: make([]KeptCall, 0, len(e.calls)), CallsLeftOut: e.leftOut}
	if !k.plain {
		out.ErrorMessage = executions.Mask(out.ErrorMessage)
	}
	for _, c := range e.calls {
		one := KeptCall{StatementID: k.statements[c.statement].ID, Position: int32(c.position), ValuesLeftOut: c.leftOut,
			Values: make([]KeptValue, 0, len(c.values))}
		for i, v := range c.values {
			one.Values = append(one.Values, k.value(e, v, c.lengths[i]))
		}
		out.Calls = append(out.Calls, one)
	}
	return out
}

// statementID is how the record names the execution.
func (k *Sampler) statementID(r *engine.Execution) string {
	s := &k.statements[r.Statement]
	if timingClassOf(r) == transaction && s.Transaction != "" {
		return s.Transaction
	}
	return s.ID
}

func (k *Sampler) value(e *entry, v plugin.Value, length uint32) KeptValue {
	out := KeptValue{Type: string(v.Type), Length: int64(length), Parameters: []int{}}
	if v.Type == "" {
		out.Type = "null"
		return out
	}
	if !k.plain && v.Type != plugin.TypeRef {
		return out
	}
	data := e.data[v.Off : v.Off+v.Len]
	text := ""
	switch v.Type {
	case engine.TypeI64:
		text = strconv.FormatInt(v.I, 10)
	case engine.TypeF64:
		text = strconv.FormatFloat(v.F, 'g', -1, 64)
	case engine.TypeBool:
		text = strconv.FormatBool(v.I != 0)
	case engine.TypeTimestamp:
		text = time.UnixMicro(v.I).UTC().Format("2006-01-02T15:04:05.999999Z")
	case engine.TypeText:
		if int(length) > len(data) {
			data = data[:validPrefix(data)]
		}
		text = strings.ToValidUTF8(string(data), "\uFFFD")
		out.Cut = int(length) > len(data)
	case engine.TypeBytes:
		text, out.Cut = hex.EncodeToString(data), int(length) > len(data)
	case plugin.TypeRef:
		op, column := v.Ref()
		text = "column " + strconv.Itoa(column+1) + " of statement " + strconv.Itoa(op+1)
	}
	out.Text = &text
	return out
}

// validPrefix is the length of a text that was cut, without the character that the cut went through.
func validPrefix(data []byte) int {
	for n := len(data); n > max(0, len(data)-utf8.UTFMax); n-- {
		if utf8.RuneStart(data[n-1]) {
			if utf8.FullRune(data[n-1:]) {
				return len(data)
			}
			return n - 1
		}
	}
	return len(data)
}

// AddStatementTexts adds to what was kept what the plan of the run says of it: texts of statements, names and places of
// parameters.
func AddStatementTexts(kept []KeptExecution, statements []engine.Statement) {
	byID := make(map[string]*engine.Statement, len(statements))
	for i := range statements {
		byID[statements[i].ID] = &statements[i]
	}
	for i := range kept {
		for j := range kept[i].Calls {
			c := &kept[i].Calls[j]
			s := byID[c.StatementID]
			if s == nil {
				continue
			}
			c.SQL = s.SQL
			for n := range c.Values {
				v := &c.Values[n]
				if n < len(s.Binds) {
					v.Name = s.Binds[n].Name
				}
				if s.BindOrder == nil {
					v.Parameters = []int{n + 1}
				}
				for at, bind := range s.BindOrder {
					if bind == n {
						v.Parameters = append(v.Parameters, at+1)
					}
				}
			}
		}
	}
}

// compareKept sorts what was kept: failures by their time, then slow ones, the slowest first.
func compareKept(a, b KeptExecution) int {
	if a.Why != b.Why {
		return strings.Compare(a.Why, b.Why)
	}
	if a.Why == Slow && a.ServiceMs != b.ServiceMs {
		return compare(b.ServiceMs, a.ServiceMs)
	}
	if c := a.EndedAt.Compare(b.EndedAt.Time); c != 0 {
		return c
	}
	if c := strings.Compare(a.WorkerID, b.WorkerID); c != 0 {
		return c
	}
	if a.ConnectionID != b.ConnectionID {
		return compare(float64(a.ConnectionID), float64(b.ConnectionID))
	}
	if a.Seq != b.Seq {
		return compare(float64(a.Seq), float64(b.Seq))
	}
	return compare(float64(a.Position), float64(b.Position))
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Merge brings what the run workers of a run have kept down to what one may keep: the first of each error of a
// statement, and the slowest of each statement.
func Merge(kept []KeptExecution) []KeptExecution {
	slices.SortFunc(kept, compareKept)
	type group struct {
		why, statement, class, code string
		place                       timingClass
		phase                       engine.Phase
	}
	counts := map[group]int{}
	return slices.DeleteFunc(kept, func(e KeptExecution) bool {
		g := group{why: e.Why, statement: e.StatementID, class: e.ErrorClass, code: e.ErrorCode, phase: e.Phase}
		switch {
		case e.Position > 0:
			g.place = inside
		case e.Kind == engine.KindTransaction:
			g.place = transaction
		}
		var most int
		switch {
		case e.Why == Slow:
			most = MaxSlowest
		case e.Phase == engine.PhaseWarmup:
			most = MaxWarmupPerError
		default:
			most = MaxPerError
		}
		counts[g]++
		return counts[g] > most
	})
}
