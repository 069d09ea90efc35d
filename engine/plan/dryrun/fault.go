package dryrun

import (
	"context"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

// maxSuspects bounds the parameters that are looked at when values are refused.
const maxSuspects = 64

// TrialFault is a parameter whose value the database refuses.
type TrialFault struct {
	Parameter string `json:"parameter"`
	// Type is what the database takes there, empty where it does not tell.
	Type string `json:"type,omitempty"`
	// Value is what its generator made.
	Value   *string `json:"value"`
	Message string  `json:"message"`
	Hint    string  `json:"hint"`
}

// faults finds the parameters whose values the database refuses: with NULL in the place of all of them it refuses
// nothing, and with the value of one alone it does. None are found where the refusal is not about single values.
func (p *probe) faults(ctx context.Context, s engine.Statement, args []any) []TrialFault {
	if len(args) == 0 || len(args) > maxSuspects {
		return nil
	}
	refused := func(args []any) *engine.ExecutionError {
		_, err := target.Read(ctx, p.database, "EXPLAIN "+s.SQL, statementTimeout, args...)
		if err == nil {
			return nil
		}
		c := p.database.Classify(err)
		return &c
	}
	none := make([]any, len(args))
	if refused(none) != nil {
		return nil
	}
	var types []target.DescribedType
	if d, ok := p.database.(target.Describer); ok {
		types, _ = d.Parameters(ctx, s.SQL) // without types the hints are general ones
	}
	var list []TrialFault
	named := map[string]bool{}
	for i, arg := range args {
		bind := i
		if s.BindOrder != nil {
			bind = s.BindOrder[i]
		}
		text, ok := arg.(string)
		if name := s.Binds[bind].Name; !ok || named[name] {
			continue
		}
		alone := make([]any, len(args))
		alone[i] = arg
		c := refused(alone)
		if c == nil || c.Class != engine.ErrClassData && c.Class != engine.ErrClassConstraint {
			continue
		}
		named[s.Binds[bind].Name] = true
		f := TrialFault{Parameter: s.Binds[bind].Name, Value: clip(text), Message: c.Message}
		var typ target.DescribedType
		if i < len(types) {
			typ = types[i]
		}
		f.Type, f.Hint = typ.Name, generatorHint(typ)
		list = append(list, f)
	}
	return list
}

// generatorHints says for types of Postgres which generator makes what they take, in the words of the form.
var generatorHints = map[string]string{
	"uuid":     "choose the generator UUID, or Key of the table",
	"boolean":  "choose One of a list, with true and false",
	"json":     `choose Text with a pattern that is JSON: {"n": "##"}`,
	"jsonb":    `choose Text with a pattern that is JSON: {"n": "##"}`,
	"smallint": "choose Uniform, with whole numbers from -32768 to 32767",
	"integer":  "choose Uniform, with whole numbers up to 2147483647",
	"bigint":   "choose Uniform, with whole numbers",
	"numeric":  "choose Uniform, with numbers that fit its digits before and after the point",
	"real":     "choose Uniform, with numbers that it can hold", "double precision": "choose Uniform",
	"bytea":                       `choose Text with type: bytes in YAML, or a pattern in hexadecimal: \\x####`,
	"date":                        "choose Time",
	"timestamp with time zone":    "choose Time",
	"timestamp without time zone": "choose Time",
	"time without time zone":      "choose Text with the pattern 1#:2#:3#",
	"interval":                    "choose Text with the pattern ## minutes",
	"character varying":           "choose Text with a shorter length",
	"character":                   "choose Text with a shorter length",
	"text":                        "choose Text that the column's length and checks allow",
	"inet":                        "choose Text with the pattern 10.#.#.#",
}

// generatorHint says what to choose for a parameter of this type.
func generatorHint(t target.DescribedType) string {
	if len(t.Values) > 0 {
		const shown = 10
		text := "choose One of a list, with " + strings.Join(t.Values[:min(shown, len(t.Values))], ", ")
		if more := len(t.Values) - shown; more > 0 {
			text += fmt.Sprintf(" or one of %d more", more)
		}
		return text
	}
	if element, is := strings.CutSuffix(t.Name, "[]"); is {
		return "choose Text with a pattern that is an array of " + element + ": {#,#}"
	}
	if text := generatorHints[t.Name]; text != "" {
		return text
	}
	if t.Name == "" {
		return "choose a generator that makes what the database takes there"
	}
	return "choose a generator that makes what " + t.Name + " takes, such as Text with a pattern"
}
