package sdk

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// Observation answers "observe", which an adapter is asked whose manifest says Observes: how the host reads what the
// server does while a run goes on. docs/extend/write-an-adapter.md names the columns and counters.
type Observation struct {
	// Skip is a sentence for the user where nothing can be observed; nothing else counts then.
	Skip string
	// Activity is SQL with one row for each session of the server, asked every ActivityMs (0: ten times a second).
	Activity   string
	ActivityMs int64
	// Counters are SQL whose rows are numbers: NAME, OBJECT, VALUE.
	Counters []ObservedCounter
	// Application is the name by which the run's connections are known; "" where they carry the run's mark.
	Application string
	// Facts and Advice are pairs of a name and a text; Missing are sentences on what cannot be seen.
	Facts, Advice [][2]string
	Missing       []string
	// ExplainPrefix, before a statement of the run, asks for its plan without executing it.
	ExplainPrefix string
}

// ObservedCounter is a statement of an Observation, asked once a second or every EveryMs.
type ObservedCounter struct {
	ID, SQL string
	EveryMs int64
	// Parts are asked instead where the whole is refused.
	Parts []ObservedCounter
}

func writeCounters(w *jsondoc.Writer, list []ObservedCounter) {
	w.Array()
	for _, c := range list {
		w.Object().Key("id").Str(c.ID).Key("sql").Str(c.SQL)
		if c.EveryMs > 0 {
			w.Key("every_ms").Int(c.EveryMs)
		}
		if len(c.Parts) > 0 {
			w.Key("parts")
			writeCounters(w, c.Parts)
		}
		w.EndObject()
	}
	w.EndArray()
}

// Write writes the answer.
func (o *Observation) Write(w *jsondoc.Writer) {
	w.Object().Key("observe").Object()
	optional(w, "skip", o.Skip)
	w.Key("activity").Str(o.Activity)
	if o.ActivityMs > 0 {
		w.Key("activity_ms").Int(o.ActivityMs)
	}
	w.Key("counters")
	writeCounters(w, o.Counters)
	optional(w, "application", o.Application)
	optional(w, "explain_prefix", o.ExplainPrefix)
	pairs := func(key string, list [][2]string) {
		w.Key(key).Object()
		for _, p := range list {
			w.Key(p[0]).Str(p[1])
		}
		w.EndObject()
	}
	pairs("facts", o.Facts)
	pairs("advice", o.Advice)
	w.Key("missing").Strs(o.Missing)
	w.EndObject().EndObject()
}
