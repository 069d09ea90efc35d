package main

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/gen"
	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// pool holds sampled rows by column, in the types that batches carry.
type pool struct {
	rows    int
	columns []poolColumn
	// held are the keys that the host holds.
	held sdk.KeyList
	// salt sums up the content, so that generated keys differ when the table does.
	salt uint64
}

type poolColumn struct {
	name  string
	typ   string
	ints  []int64
	nums  []float64
	texts []string
	null  []bool
}

// readPool converts the sampled rows. Rows that do not fit the columns' types are an error.
func readPool(in sdk.Pool, t *sdk.Table) (pool, error) {
	p := pool{rows: in.Rows.Len(), held: in.Keys}
	for i, name := range in.Columns {
		c := t.Column(name)
		if c == nil {
			return p, errors.New("the key pool names a column " + strconv.Quote(name) + " that the table does not have")
		}
		pc := poolColumn{name: name, typ: c.Type, null: make([]bool, p.rows)}
		for r := 0; r < p.rows; r++ {
			v := in.Rows.At(r).At(i)
			if err := pc.add(v, r); err != nil {
				return p, errors.New("key pool, row " + strconv.Itoa(r) + ", column " + strconv.Quote(name) + ": " + err.Error())
			}
			for _, ch := range []byte(v.Str()) {
				p.salt = p.salt*0x100000001b3 + uint64(ch) + 1
			}
		}
		p.salt = gen.Mix(p.salt)
		p.columns = append(p.columns, pc)
	}
	return p, nil
}

func (c *poolColumn) add(v *jsondoc.Value, row int) error {
	var (
		n  int64
		f  float64
		s  string
		ok = true
	)
	c.null[row] = v.IsNull()
	if !v.IsNull() {
		switch c.typ {
		case sdk.I64, sdk.Timestamp:
			n, ok = v.Int()
		case sdk.F64:
			f, ok = v.Float()
		case sdk.Bool:
			if v.Bool() || v.Str() == "t" || v.Str() == "1" {
				n = 1
			}
		case sdk.Bytes:
			s, ok = unhex(v.Str())
		default:
			s = v.Str()
		}
	}
	if !ok {
		return errors.New(strconv.Quote(v.Str()) + " is not of type " + c.typ)
	}
	switch c.typ {
	case sdk.I64, sdk.Timestamp, sdk.Bool:
		c.ints = append(c.ints, n)
	case sdk.F64:
		c.nums = append(c.nums, f)
	default:
		c.texts = append(c.texts, s)
	}
	return nil
}

// unhex reads bytes as pools carry them: two hexadecimal digits each.
func unhex(in string) (string, bool) {
	out := make([]byte, 0, len(in)/2)
	for i := 0; i+1 < len(in); i += 2 {
		n, err := strconv.ParseUint(in[i:i+2], 16, 8)
		if err != nil {
			return "", false
		}
		out = append(out, byte(n))
	}
	return string(out), len(in)%2 == 0
}

// find returns the column of that name, or nil. Nil-safe for an empty pool.
func (p *pool) find(name string) *poolColumn {
	if p.rows == 0 {
		return nil
	}
	for i := range p.columns {
		if p.columns[i].name == name {
			return &p.columns[i]
		}
	}
	return nil
}

// put writes the value of a row.
func (c *poolColumn) put(b *sdk.Batch, row int64) {
	if c.null[row] {
		b.Null()
		return
	}
	switch c.typ {
	case sdk.I64:
		b.I64(c.ints[row])
	case sdk.Timestamp:
		b.Timestamp(c.ints[row])
	case sdk.Bool:
		b.Bool(c.ints[row] == 1)
	case sdk.F64:
		b.F64(c.nums[row])
	case sdk.Bytes:
		b.Blob([]byte(c.texts[row]))
	default:
		b.Text(c.texts[row])
	}
}

// top is the largest number of the column, 0 when there is none. Texts are read as numbers.
func (c *poolColumn) top() int64 {
	best := int64(0)
	for _, n := range c.ints {
		best = max(best, n)
	}
	for _, s := range c.texts {
		if f, err := strconv.ParseFloat(s, 64); err == nil && f < 1<<53 {
			best = max(best, int64(f))
		}
	}
	return best
}
