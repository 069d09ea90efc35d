// This part judges whether rows of a stream fit a table of Postgres: each column by its name, and by a type that
// holds every value which the stream's can have. It knows no database; what a table is like was read by others.

package postgres

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
)

// Table is a table as it was found.
type Table struct {
	Schema, Name string
	Columns      []Column
	// Version is that of the server, as server_version_num has it: 150004.
	Version int
}

// Column is a column of a table.
type Column struct {
	Name string
	// Type is how Postgres shows the type, Base the name of the type alone: numeric(10,2) and numeric.
	Type, Base string
	// Precision and Scale are those of a numeric that has limits; Precision is 0 of one that has none.
	Precision, Scale int
	// Limited says that texts may be too long for it.
	Limited bool
	// Required says that a row has to have a value for it; Generated that none may be given.
	Required, Generated bool
	// Denied says that the user who writes may not insert into it.
	Denied bool
}

// MismatchError says why rows do not fit, and what to do about it.
type MismatchError struct {
	// Missing says that there is no such table.
	Missing bool
	Message string
	Hint    string
}

// Error is the sentence without the cure.
func (e *MismatchError) Error() string { return e.Message }

// minInfinityVersion is the first version whose numeric holds an infinity.
const minInfinityVersion = 140000

// Fit returns, for each column of a stream, the name of the table's column that takes it; the error is a
// *MismatchError. Names are compared exactly, or else without case.
func (t Table) Fit(columns []column.Column) ([]string, error) {
	taken := map[string]string{}
	names := make([]string, len(columns))
	for i, c := range columns {
		to, err := t.column(c.Name)
		if err != nil {
			return nil, err
		}
		if other, twice := taken[to.Name]; twice {
			return nil, &MismatchError{
				Message: fmt.Sprintf("the columns %s and %s are both written to %s", other, c.Name, to.Name),
				Hint:    "name one of them otherwise: x AS name"}
		}
		taken[to.Name] = c.Name
		if to.Generated {
			return nil, &MismatchError{
				Message: fmt.Sprintf("the column %s of %s is generated: it takes no value", to.Name, t.Shown()),
				Hint:    "leave it out"}
		}
		if to.Denied {
			return nil, &MismatchError{
				Message: fmt.Sprintf("the user of the connection may not insert into the column %s of %s", to.Name, t.Shown()),
				Hint:    fmt.Sprintf("GRANT INSERT (%s) ON %s to it", Quote(to.Name), t.Quoted())}
		}
		if !to.holds(c.Type, t.Version) {
			return nil, &MismatchError{
				Message: fmt.Sprintf("the column %s is %s, and %s.%s is %s, which does not hold every value of it", c.Name,
					c.Type, t.Shown(), to.Name, to.Type),
				Hint: fmt.Sprintf("CAST it in the query, or ALTER TABLE %s ALTER COLUMN %s TYPE %s", t.Quoted(), Quote(to.Name),
					TypeOf(c.Type))}
		}
		names[i] = to.Name
	}
	for _, c := range t.Columns {
		if _, given := taken[c.Name]; c.Required && !given {
			return nil, &MismatchError{
				Message: fmt.Sprintf("the column %s of %s has to have a value, and no column is named like it", c.Name, t.Shown()),
				Hint: fmt.Sprintf("select it, or ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL, or give it a DEFAULT", t.Quoted(),
					Quote(c.Name))}
		}
	}
	return names, nil
}

// column finds a column by name.
func (t Table) column(name string) (Column, error) {
	if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return t.Columns[i], nil
	}
	var like []Column
	var all []string
	for _, c := range t.Columns {
		all = append(all, c.Name)
		if strings.EqualFold(c.Name, name) {
			like = append(like, c)
		}
	}
	switch {
	case len(like) == 1:
		return like[0], nil
	case len(like) > 1:
		return Column{}, &MismatchError{
			Message: fmt.Sprintf("%s has several columns that are named %s but for case", t.Shown(), name),
			Hint:    fmt.Sprintf("name it exactly: x AS `%s`", like[0].Name)}
	}
	return Column{}, &MismatchError{Message: fmt.Sprintf("%s has no column %s", t.Shown(), name),
		Hint: fmt.Sprintf("its columns are %s; name it otherwise (x AS name), or ALTER TABLE %s ADD COLUMN %s …",
			strings.Join(all[:min(len(all), 20)], ", "), t.Quoted(), Quote(name))}
}

// holds reports whether a column takes every value of a type of streams.
func (c Column) holds(t column.Type, version int) bool {
	switch c.Base {
	case "text":
		return true
	case "varchar":
		return !c.Limited
	case "numeric":
		return c.numeric(t, version)
	}
	switch t.Kind {
	case column.Unknown:
		return true
	case column.Boolean:
		return c.Base == "bool"
	case column.Timestamp:
		return c.Base == "timestamptz" || c.Base == "timestamp"
	case column.Float:
		return c.Base == "float8" || c.Base == "float4" && t.Bits == 32
	case column.Int:
		room := map[string]uint8{"int2": 16, "int4": 32, "int8": 64, "float4": 24, "float8": 53}[c.Base]
		need := t.Bits
		if t.Unsigned && t.Bits < 64 { // a UINT64 has 63
			need++
		}
		return need <= room
	}
	return false
}

// numeric is holds of a numeric.
func (c Column) numeric(t column.Type, version int) bool {
	var whole, scale int
	switch t.Kind {
	case column.Unknown:
		return true
	case column.Float:
		return c.Precision == 0 && version >= minInfinityVersion
	case column.Decimal:
		whole, scale = int(t.Precision)-int(t.Scale), int(t.Scale)
	case column.Int:
		whole = map[uint8]int{8: 3, 16: 5, 32: 10, 64: 19}[t.Bits]
	default:
		return false
	}
	return c.Precision == 0 || c.Scale >= scale && c.Precision-c.Scale >= whole
}

// TypeOf is the type of Postgres that holds a type of streams best.
func TypeOf(t column.Type) string {
	switch t.Kind {
	case column.Boolean:
		return "boolean"
	case column.Timestamp:
		return "timestamptz"
	case column.Float:
		if t.Bits == 32 {
			return "real"
		}
		return "double precision"
	case column.Decimal:
		return fmt.Sprintf("numeric(%d, %d)", t.Precision, t.Scale)
	case column.Int:
		switch {
		case t.Bits <= 8, t.Bits == 16 && !t.Unsigned:
			return "smallint"
		case t.Bits == 16, t.Bits == 32 && !t.Unsigned:
			return "integer"
		}
		return "bigint"
	}
	return "text"
}

// CreateTable is the statement that makes a table for rows.
func CreateTable(schema, name string, columns []column.Column) string {
	var parts []string
	for _, c := range columns {
		part := Quote(c.Name) + " " + TypeOf(c.Type)
		if c.NotNull {
			part += " NOT NULL"
		}
		parts = append(parts, part)
	}
	return "CREATE TABLE " + Table{Schema: schema, Name: name}.Quoted() + " (" + strings.Join(parts, ", ") + ")"
}

// Quoted is the name of a table as statements have it.
func (t Table) Quoted() string {
	if t.Schema == "" {
		return Quote(t.Name)
	}
	return Quote(t.Schema) + "." + Quote(t.Name)
}

// Shown is the name of a table as sentences have it.
func (t Table) Shown() string {
	if t.Schema == "" {
		return t.Name
	}
	return t.Schema + "." + t.Name
}

// Quote is a name as statements have it.
func Quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
