package sdk

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// The ways to make a sample value of a row; rows count from 0.
const (
	// FillNumber is From + row. In a text column it is Prefix and that number, with
	// zeros before it up to Min digits.
	FillNumber = "number"
	// FillBlock is From + row/Step: Step rows in a row have the same value.
	FillBlock = "block"
	// FillConstant is Values[0], or NULL without one.
	FillConstant = "constant"
	// FillInteger is a whole number from Min to Max, all alike often.
	FillInteger = "integer"
	// FillDecimal is a number from Min up to Max, without Max, with Scale digits after the point.
	FillDecimal = "decimal"
	// FillChoice is one of Values, all alike often.
	FillChoice = "choice"
	// FillLetters is Min to Max random letters.
	FillLetters = "letters"
	// FillTime is the time From + row·Step modulo Max, all in µs since 1970 UTC; Max 0 is no bound.
	FillTime = "time"
)

// Fill is how sample values of a column are made.
type Fill struct {
	As                          string
	From, Step, Min, Max, Scale int64
	Prefix                      string
	Values                      []string
}

func readFill(doc *jsondoc.Value) *Fill {
	if doc.IsNull() {
		return nil
	}
	f := &Fill{As: doc.Get("as").Str(), Prefix: doc.Get("prefix").Str(), Values: doc.Get("values").Strings()}
	for _, n := range f.numbers() {
		*n.to, _ = doc.Get(n.name).Int()
	}
	return f
}

type fillNumber struct {
	name string
	to   *int64
}

func (f *Fill) numbers() []fillNumber {
	return []fillNumber{{"from", &f.From}, {"step", &f.Step}, {"min", &f.Min}, {"max", &f.Max}, {"scale", &f.Scale}}
}

func (f *Fill) write(w *jsondoc.Writer) {
	w.Object().Key("as").Str(f.As)
	for _, n := range f.numbers() {
		if *n.to != 0 {
			w.Key(n.name).Int(*n.to)
		}
	}
	optional(w, "prefix", f.Prefix)
	if len(f.Values) > 0 {
		w.Key("values").Strs(f.Values)
	}
	w.EndObject()
}
