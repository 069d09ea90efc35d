package main

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// kinds are the operation kinds in the order of the statement list.
var kinds = [...]string{sdk.PointLookup, sdk.RangeScan, sdk.Insert, sdk.Update, sdk.Delete}

const (
	lookup = iota
	scan
	insert
	update
	remove
	numKinds
)

type params struct {
	// weights are scaled to integers.
	weights [numKinds]int64
	// weighted: the document has weights; without them a table of somebody else is only read.
	weighted    bool
	keys        distribution
	theta       float64
	scrambled   bool
	scanLength  int64
	minSize     int64
	maxSize     int64
	thinkMicros int64
	// insertColumns and updateColumns are chosen by hand; none leaves the choice to the plan.
	insertColumns, updateColumns []string
}

// weightScale keeps three decimals of a weight.
const weightScale = 1000

func readParams(doc *jsondoc.Value) (params, error) {
	p := params{theta: 0.99, scrambled: true, scanLength: 100, minSize: 20, maxSize: 100}
	p.weights = [numKinds]int64{70 * weightScale, 10 * weightScale, 10 * weightScale, 10 * weightScale, 0}
	if !doc.IsNull() && doc.Kind() != jsondoc.Object {
		return p, errors.New("params must be an object")
	}
	for _, name := range doc.Names() {
		if err := p.read(name, doc.Get(name)); err != nil {
			return p, err
		}
	}
	if p.maxSize < p.minSize {
		if doc.Get("value_size").Has("max") {
			return p, errors.New("value_size.max is below value_size.min")
		}
		p.maxSize = p.minSize
	}
	return p, nil
}

func (p *params) read(name string, v *jsondoc.Value) error {
	switch name {
	case "weights":
		return p.readWeights(v)
	case "keys":
		for i, known := range distributions {
			if known == v.Str() {
				p.keys = distribution(i)
				return nil
			}
		}
		return errors.New("keys is " + strconv.Quote(v.Str()) + ": one of uniform, zipfian, latest, sequential")
	case "zipf_theta":
		return readFloat(name, v, 0, 5, &p.theta)
	case "zipf_scrambled":
		if v.Kind() != jsondoc.Bool {
			return errors.New("zipf_scrambled must be true or false")
		}
		p.scrambled = v.Bool()
		return nil
	case "scan_length":
		return readInt(name, v, 1, 10_000, &p.scanLength)
	case "insert_columns":
		return readNames(name, v, &p.insertColumns)
	case "update_columns":
		return readNames(name, v, &p.updateColumns)
	case "value_size":
		for _, member := range v.Names() {
			to := &p.minSize
			switch member {
			case "min":
			case "max":
				to = &p.maxSize
			default:
				return errors.New("value_size has no member " + strconv.Quote(member) + ": min and max")
			}
			if err := readInt("value_size."+member, v.Get(member), 0, maxValueSize, to); err != nil {
				return err
			}
		}
		if p.maxSize < p.minSize && !v.Has("min") {
			p.minSize = p.maxSize
		}
		return nil
	case "think_time_ms":
		var ms float64
		err := readFloat(name, v, 0, 3_600_000, &ms)
		p.thinkMicros = int64(ms * 1000)
		return err
	}
	return errors.New("unknown parameter " + strconv.Quote(name))
}

func (p *params) readWeights(v *jsondoc.Value) error {
	p.weights, p.weighted = [numKinds]int64{}, true
	total := int64(0)
names:
	for _, name := range v.Names() {
		for i, kind := range kinds {
			if kind == name {
				var w float64
				if err := readFloat("weights."+name, v.Get(name), 0, 1_000_000, &w); err != nil {
					return err
				}
				p.weights[i] = int64(w * weightScale)
				total += p.weights[i]
				continue names
			}
		}
		return errors.New("weights has no kind " + strconv.Quote(name) + ": POINT_LOOKUP, RANGE_SCAN, INSERT, UPDATE, DELETE")
	}
	if total == 0 {
		return errors.New("all weights are 0: give at least one kind of operation a weight above 0")
	}
	return nil
}

// maxValueSize bounds one generated value, so that an operation with some of them fits into a batch.
const maxValueSize = 1 << 20

// readNames reads a list of names, each once.
func readNames(param string, v *jsondoc.Value, to *[]string) error {
	if v.Kind() != jsondoc.Array || v.Len() == 0 || v.Len() > maxBinds {
		return errors.New(param + " must be a list of 1 to " + strconv.Itoa(maxBinds) + " columns")
	}
	for i := range v.Len() {
		name := v.At(i).Str()
		if v.At(i).Kind() != jsondoc.String || name == "" || has(*to, name) {
			return errors.New(param + " must be a list of the names of columns, each once")
		}
		*to = append(*to, name)
	}
	return nil
}

func readInt(name string, v *jsondoc.Value, lo, hi int64, to *int64) error {
	n, ok := v.Int()
	if !ok || v.Kind() != jsondoc.Number || n < lo || n > hi {
		return errors.New(name + " must be a whole number from " + strconv.FormatInt(lo, 10) + " to " +
			strconv.FormatInt(hi, 10))
	}
	*to = n
	return nil
}

func readFloat(name string, v *jsondoc.Value, lo, hi float64, to *float64) error {
	f, ok := v.Float()
	if !ok || v.Kind() != jsondoc.Number || !(f >= lo && f <= hi) {
		return errors.New(name + " must be a number from " + strconv.FormatFloat(lo, 'f', -1, 64) + " to " +
			strconv.FormatFloat(hi, 'f', -1, 64))
	}
	*to = f
	return nil
}
