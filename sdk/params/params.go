// Package params reads the parameters of a workload into variables. The host has
// checked them against the manifest's JSON Schema when it starts a run, but a
// plugin is also opened without one, and a JSON Schema cannot say everything.
package params

import (
	"errors"
	"strconv"
	"strings"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// Reader reads the members of one object. A member that is absent or null leaves
// its variable as it is, so defaults are what the variables held before. The
// first error is kept; Done returns it.
type Reader struct {
	doc  *jsondoc.Value
	path string
	read []string
	err  error
}

// Read begins with an object; nil and null count as an empty one.
func Read(doc *jsondoc.Value) *Reader { return at(doc, "") }

// At begins with an object that errors call path: "statements[2]".
func At(doc *jsondoc.Value, path string) *Reader { return at(doc, path) }

func at(doc *jsondoc.Value, path string) *Reader {
	r := &Reader{doc: doc, path: path}
	if !doc.IsNull() && doc.Kind() != jsondoc.Object {
		if path == "" {
			path = "params"
		}
		r.err = errors.New(path + " must be an object")
	}
	return r
}

// Name is how errors call a member: its path from the parameters on.
func (r *Reader) Name(member string) string {
	if r.path == "" {
		return member
	}
	return r.path + "." + member
}

// Fail records an error about a member, unless there is one already.
func (r *Reader) Fail(member, says string) {
	if r.err == nil {
		r.err = errors.New(r.Name(member) + " " + says)
	}
}

// Value returns a member as it is; nil when it is absent or null.
func (r *Reader) Value(member string) *jsondoc.Value {
	r.read = append(r.read, member)
	v := r.doc.Get(member)
	if v.IsNull() {
		return nil
	}
	return v
}

// Has reports whether a member is there and not null.
func (r *Reader) Has(member string) bool { return !r.doc.Get(member).IsNull() }

// Int reads a whole number from lo to hi.
func (r *Reader) Int(member string, lo, hi int64, to *int64) {
	v := r.Value(member)
	if v == nil {
		return
	}
	n, ok := v.Int()
	if !ok || v.Kind() != jsondoc.Number || n < lo || n > hi {
		r.Fail(member, "must be a whole number from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
		return
	}
	*to = n
}

// Float reads a number from lo to hi.
func (r *Reader) Float(member string, lo, hi float64, to *float64) {
	v := r.Value(member)
	if v == nil {
		return
	}
	f, ok := v.Float()
	if !ok || v.Kind() != jsondoc.Number || !(f >= lo && f <= hi) {
		r.Fail(member, "must be a number from "+strconv.FormatFloat(lo, 'f', -1, 64)+" to "+
			strconv.FormatFloat(hi, 'f', -1, 64))
		return
	}
	*to = f
}

// Bool reads true or false.
func (r *Reader) Bool(member string, to *bool) {
	v := r.Value(member)
	if v == nil {
		return
	}
	if v.Kind() != jsondoc.Bool {
		r.Fail(member, "must be true or false")
		return
	}
	*to = v.Bool()
}

// Text reads a string.
func (r *Reader) Text(member string, to *string) {
	v := r.Value(member)
	if v == nil {
		return
	}
	if v.Kind() != jsondoc.String {
		r.Fail(member, "must be a text")
		return
	}
	*to = v.Str()
}

// Choice reads one of the names and sets its index.
func (r *Reader) Choice(member string, names []string, to *int) {
	v := r.Value(member)
	if v == nil {
		return
	}
	for i, name := range names {
		if v.Kind() == jsondoc.String && v.Str() == name {
			*to = i
			return
		}
	}
	r.Fail(member, "is "+strconv.Quote(v.Str())+": one of "+strings.Join(names, ", "))
}

// Object begins with a member that is an object.
func (r *Reader) Object(member string) *Reader { return at(r.Value(member), r.Name(member)) }

// Join records the error of a reader of a member.
func (r *Reader) Join(inner *Reader) {
	if err := inner.Done(); r.err == nil {
		r.err = err
	}
}

// Done returns the first error; a member that nobody asked for is one.
func (r *Reader) Done() error {
	if r.err != nil {
		return r.err
	}
names:
	for _, name := range r.doc.Names() {
		for _, known := range r.read {
			if name == known {
				continue names
			}
		}
		return errors.New("unknown parameter " + strconv.Quote(r.Name(name)) + ": one of " + strings.Join(r.read, ", "))
	}
	return nil
}
