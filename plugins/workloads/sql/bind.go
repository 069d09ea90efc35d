package main

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
	"github.com/loadstone-db/loadstone/sdk/params"
)

// source is where the values of a bind come from.
type source int

const (
	fromSequence source = iota
	fromUniform
	fromZipfian
	fromNormal
	fromChoice
	fromUUID
	fromText
	fromTimestamp
	fromConstant
	fromKey
	fromNewKey
	fromRow
	fromRef
)

var sources = []string{"sequence", "uniform", "zipfian", "normal", "choice", "uuid", "text", "timestamp", "constant",
	"key", "new_key", "row"}

var types = []string{sdk.I64, sdk.F64, sdk.Text, sdk.Bytes, sdk.Bool, sdk.Timestamp}

// bind is one parameter with its generator, as written.
type bind struct {
	name, path string
	source     source
	typ        string
	nulls      float64
	ref        string
	refK, refC uint8

	min, max         float64
	hasMin, hasMax   bool
	decimals         int64
	theta            float64
	hasTheta         bool
	scrambled        bool
	mean, stddev     float64
	start, step      int64
	values           []value
	weights          []float64
	minLen, maxLen   int64
	alphabet         []rune
	pattern          []token
	from, to         int64
	column           string
	ints             []int64 // of the table's sampled column
	floats           []float64
	texts            []string
	missing          []bool
	keyMin, keyCount int64
	// of is the bind of the first row, for one of a later row.
	of *bind
	// held: the values are those of a column of the keys that the host holds, of so many rows.
	held                 bool
	heldPool, heldColumn uint8
	population           int64
}

// value is a value of choice or constant.
type value struct {
	null bool
	i    int64
	f    float64
	text string
}

// token is one character of a pattern.
type token struct {
	class byte // '#', '?', '*', or 0 for text
	text  string
}

func readBinds(r *params.Reader, path string) ([]*bind, error) {
	list := r.Value("binds")
	if list != nil && list.Kind() != jsondoc.Array {
		return nil, errors.New(path + ".binds must be a list of {name, generator, …}")
	}
	var binds []*bind
	for i := range list.Len() {
		b := &bind{path: path + ".binds[" + strconv.Itoa(i) + "]"}
		if err := b.read(list.At(i)); err != nil {
			return nil, err
		}
		if find(binds, b.name) != nil {
			return nil, errors.New(b.path + ".name: there are two binds " + strconv.Quote(b.name))
		}
		binds = append(binds, b)
	}
	return binds, nil
}

func (b *bind) read(doc *jsondoc.Value) error {
	r := params.At(doc, b.path)
	b.theta, b.scrambled, b.start, b.step = 0.99, true, 1, 1
	from, typ := -1, -1
	length := int64(-1)
	b.minLen, b.maxLen = -1, -1
	var alphabet, pattern, begin, end string
	r.Text("name", &b.name)
	r.Choice("generator", sources, &from)
	r.Choice("type", types, &typ)
	r.Float("nulls", 0, 100, &b.nulls)
	r.Text("ref", &b.ref)
	b.hasMin, b.hasMax, b.hasTheta = r.Has("min"), r.Has("max"), r.Has("theta")
	r.Float("min", -math.MaxFloat64, math.MaxFloat64, &b.min)
	r.Float("max", -math.MaxFloat64, math.MaxFloat64, &b.max)
	r.Int("decimals", 0, 9, &b.decimals)
	r.Float("theta", 0, 5, &b.theta)
	r.Bool("scrambled", &b.scrambled)
	hasMean := r.Has("mean") && r.Has("stddev")
	r.Float("mean", -1e300, 1e300, &b.mean)
	r.Float("stddev", 0, 1e300, &b.stddev)
	r.Int("start", math.MinInt64, math.MaxInt64, &b.start)
	r.Int("step", 1, 1_000_000_000, &b.step)
	values, single := r.Value("values"), r.Value("value")
	hasValue := doc.Has("value")
	for i, w := 0, r.Value("weights"); i < w.Len(); i++ {
		f, ok := w.At(i).Float()
		if !ok || !(f >= 0 && f <= 1e6) {
			r.Fail("weights", "must be numbers from 0 to 1000000")
		}
		b.weights = append(b.weights, f)
	}
	r.Int("length", 0, 65_536, &length)
	r.Int("min_length", 0, 65_536, &b.minLen)
	r.Int("max_length", 0, 65_536, &b.maxLen)
	r.Text("alphabet", &alphabet)
	r.Text("pattern", &pattern)
	r.Text("from", &begin)
	r.Text("to", &end)
	r.Text("column", &b.column)
	if err := r.Done(); err != nil {
		return err
	}
	if b.name == "" {
		return errors.New(b.path + ".name is missing: the parameter's name, without its colon")
	}
	if err := b.choose(from, hasValue, values != nil); err != nil {
		return err
	}
	if typ >= 0 {
		b.typ = types[typ]
	}
	if length >= 0 {
		b.minLen, b.maxLen = length, length
	}
	b.alphabet = []rune(alphabet)
	var err error
	switch b.source {
	case fromUniform, fromZipfian:
		err = b.checkRange()
	case fromNormal:
		if !hasMean {
			err = b.wrong("needs mean and stddev")
		}
		b.number()
	case fromSequence:
		b.number()
	case fromChoice:
		err = b.readValues(values)
	case fromConstant:
		one := []value{{}}
		if b.typ == "" {
			b.typ = typeOf(single)
		}
		one[0], err = b.convert(single)
		b.values = one
	case fromUUID:
		b.setOnlyType(sdk.Text)
	case fromText:
		err = b.checkText(pattern)
	case fromTimestamp:
		b.setOnlyType(sdk.Timestamp)
		if b.from, err = b.moment("from", begin); err == nil {
			b.to, err = b.moment("to", end)
		}
		if err == nil && b.to < b.from {
			err = b.wrong("has a to that is before its from")
		}
	case fromRef:
		if b.typ == "" {
			b.typ = sdk.Text
		}
	case fromRow:
		if b.column == "" {
			err = b.wrong("needs the column")
		}
	}
	return err
}

// choose says where the values come from: the generator that is named, or what is given in its place.
func (b *bind) choose(from int, hasValue, hasValues bool) error {
	switch {
	case b.ref != "" && from >= 0:
		return errors.New(b.path + " (:" + b.name + ") has a ref and a generator: keep one")
	case b.ref != "":
		b.source = fromRef
	case from >= 0:
		b.source = source(from)
	case hasValue:
		b.source = fromConstant
	case hasValues:
		b.source = fromChoice
	default:
		return errors.New(b.path + " (:" + b.name + ") says nothing of its values: give it a generator, a value, values, " +
			"or a ref")
	}
	return nil
}

func (b *bind) wrong(says string) error {
	name := "ref"
	if b.source != fromRef {
		name = sources[b.source]
	}
	return errors.New(b.path + " (:" + b.name + "): " + name + " " + says)
}

// setOnlyType sets the one type that the generator makes, when none was told.
func (b *bind) setOnlyType(typ string) {
	if b.typ == "" {
		b.typ = typ
	}
}

// number is the type of a generator of numbers.
func (b *bind) number() {
	switch {
	case b.typ != "":
	case b.decimals > 0:
		b.typ = sdk.Text
	case b.source == fromUniform && (b.min != math.Trunc(b.min) || b.max != math.Trunc(b.max)), b.source == fromNormal &&
		b.stddev != math.Trunc(b.stddev):
		b.typ = sdk.F64
	default:
		b.typ = sdk.I64
	}
}

func (b *bind) checkRange() error {
	const limit = 1 << 62
	switch {
	case !b.hasMax:
		return b.wrong("needs max")
	case b.max < b.min:
		return b.wrong("has a max below its min")
	}
	b.number()
	if b.typ == sdk.F64 && b.source == fromUniform {
		return nil
	}
	scale := math.Pow10(int(b.decimals))
	if b.min*scale < -limit || b.max*scale > limit {
		return b.wrong("has a range that is too wide for whole numbers; type: f64 takes any")
	}
	return nil
}

func (b *bind) checkText(pattern string) error {
	b.setOnlyType(sdk.Text)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '#', '?', '*':
			b.pattern = append(b.pattern, token{class: c})
			continue
		case '\\':
			i++
			if i == len(pattern) {
				return b.wrong("has a pattern that ends with a backslash")
			}
		}
		if n := len(b.pattern); n > 0 && b.pattern[n-1].class == 0 {
			b.pattern[n-1].text += pattern[i : i+1]
		} else {
			b.pattern = append(b.pattern, token{text: pattern[i : i+1]})
		}
	}
	switch {
	case len(b.pattern) > 0 && (b.maxLen >= 0 || len(b.alphabet) > 0):
		return b.wrong("has a pattern, which says the length and the characters already")
	case len(b.pattern) > 0:
	case b.maxLen < 0:
		return b.wrong("needs a length, a max_length or a pattern")
	case b.minLen > b.maxLen:
		return b.wrong("has a min_length above its max_length")
	}
	b.minLen = max(b.minLen, 0)
	return nil
}

func (b *bind) moment(member, text string) (int64, error) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	if text == "" {
		return 0, b.wrong("needs " + member + ": 2024-01-31, or 2024-01-31T12:00:00Z")
	}
	return 0, b.wrong("has a " + member + " that is no time: " + strconv.Quote(text) +
		"; write 2024-01-31, or 2024-01-31T12:00:00Z")
}

func (b *bind) readValues(doc *jsondoc.Value) error {
	if doc.Kind() != jsondoc.Array || doc.Len() == 0 {
		return b.wrong("needs values: a list")
	}
	if b.weights != nil && len(b.weights) != doc.Len() {
		return b.wrong("has " + strconv.Itoa(doc.Len()) + " values and " + strconv.Itoa(len(b.weights)) + " weights")
	}
	for i := 0; b.typ == "" && i < doc.Len(); i++ {
		b.typ = typeOf(doc.At(i))
	}
	// Whole numbers among fractions are fractions.
	for i := range doc.Len() {
		if b.typ == sdk.I64 && typeOf(doc.At(i)) == sdk.F64 {
			b.typ = sdk.F64
		}
	}
	for i := range doc.Len() {
		v, err := b.convert(doc.At(i))
		if err != nil {
			return err
		}
		b.values = append(b.values, v)
	}
	sum := 0.0
	for _, w := range b.weights {
		sum += w
	}
	if b.weights != nil && sum == 0 {
		return b.wrong("has only weights of 0")
	}
	return nil
}

// typeOf is the bind type of a JSON value; "" for null.
func typeOf(v *jsondoc.Value) string {
	switch v.Kind() {
	case jsondoc.Null:
		return ""
	case jsondoc.Number:
		if _, whole := v.Int(); whole {
			return sdk.I64
		}
		return sdk.F64
	case jsondoc.Bool:
		return sdk.Bool
	}
	return sdk.Text
}

// convert reads a JSON value as the bind's type; without one, text.
func (b *bind) convert(v *jsondoc.Value) (value, error) {
	b.setOnlyType(sdk.Text)
	if v.IsNull() {
		return value{null: true}, nil
	}
	var (
		out value
		ok  bool
	)
	switch b.typ {
	case sdk.I64:
		out.i, ok = v.Int()
	case sdk.F64:
		out.f, ok = v.Float()
	case sdk.Bool:
		ok = v.Kind() == jsondoc.Bool
		if v.Bool() {
			out.i = 1
		}
	case sdk.Timestamp:
		var err error
		out.i, err = b.moment("value", v.Str())
		return out, err
	default:
		ok = v.Kind() != jsondoc.Object && v.Kind() != jsondoc.Array
		out.text = v.Str()
	}
	if !ok {
		return out, b.wrong("has a value that is not of type " + b.typ + ": " + strconv.Quote(v.Str()))
	}
	return out, nil
}
