package target

import "context"

// Describer is an optional ability of a Database: it tells what its columns hold, and what
// the parameters of a statement take.
type Describer interface {
	// Columns lists those of the tables and views that the user sees, in the order of the
	// tables' names, and no more than most.
	Columns(ctx context.Context, most int) ([]DescribedColumn, error)
	// Parameters are the types of a statement's positional parameters, in their order. The
	// statement is not executed.
	Parameters(ctx context.Context, sql string) ([]DescribedType, error)
}

// DescribedType is a type as the database writes it.
type DescribedType struct {
	// Name has its length or its precision where they are known: numeric(10,2), integer[].
	Name string
	// Values are all that there are, of a type that lists them.
	Values []string
}

// DescribedColumn is a column of a table or a view.
type DescribedColumn struct {
	Schema, Relation, Name string
	// Type of a domain is the type under it.
	Type DescribedType
	// Generated is "always" where only the database makes its values, "default" where it makes those
	// that are left out.
	Generated string
	// Key: its table's primary key has this column and no other.
	Key bool
}
