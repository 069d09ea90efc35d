package system

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// schemas are the columns of each stream, as Sources makes them.
var schemas = sync.OnceValue(func() map[string][]column.Column {
	all := map[string][]column.Column{}
	parsed, err := sql.Parse(Sources)
	if err != nil {
		panic(err)
	}
	for _, p := range parsed {
		s, is := p.Statement.(*sql.CreateLogicalSource)
		if !is {
			continue
		}
		for _, d := range s.Columns {
			t, err := column.TypeNamed(d.Type.Name.Text, d.Type.Args)
			if err != nil {
				panic(err)
			}
			all[s.Name.Text] = append(all[s.Name.Text], column.Column{Name: d.Name.Text, Type: t})
		}
	}
	return all
})

// Fits reports whether a source has the columns of a stream, and names those: rows of the stream have no others.
func Fits(stream string, columns []column.Column) (want string, fits bool) {
	var parts []string
	for _, c := range schemas()[stream] {
		parts = append(parts, c.Name+" "+c.Type.String())
	}
	return strings.Join(parts, ", "), slices.EqualFunc(schemas()[stream], columns, func(a, b column.Column) bool {
		return sql.SameName(a.Name, b.Name) && a.Type == b.Type
	})
}

// Schemas are the streams as sources that a query can name.
type Schemas struct{}

// Schema returns the columns of a stream.
func (Schemas) Schema(name string) ([]column.Column, bool) {
	for stream, columns := range schemas() {
		if sql.SameName(stream, name) {
			return columns, true
		}
	}
	return nil, false
}

// Names are those of all streams.
func (Schemas) Names() []string { return slices.Sorted(maps.Keys(schemas())) }
