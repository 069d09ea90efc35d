package sql

import "time"

// Name is a name as it was written, at a byte of the source.
type Name struct {
	Text string
	At   int
}

// Statement is one of the statements below.
type Statement interface{ statement() }

// Entity is a kind of thing in the catalog.
type Entity string

// The five entities.
const (
	Worker         Entity = "WORKER"
	LogicalSource  Entity = "LOGICAL SOURCE"
	PhysicalSource Entity = "PHYSICAL SOURCE"
	Sink           Entity = "SINK"
	Query          Entity = "QUERY"
)

// Existing says what a CREATE does where the entity is there already.
type Existing string

// Without a word it is refused.
const (
	RefuseExisting  Existing = ""
	KeepExisting    Existing = "IF NOT EXISTS"
	ReplaceExisting Existing = "OR REPLACE"
)

// CreateWorker is CREATE [OR REPLACE] WORKER [IF NOT EXISTS] host SET(port AS GRPC_PORT, port AS DATA_PORT,
// n AS NUM_SLOTS, (host, …) AS PEERS).
type CreateWorker struct {
	Existing Existing
	Host     Name
	Settings []Setting
}

// CreateLogicalSource is CREATE [OR REPLACE] LOGICAL SOURCE [IF NOT EXISTS] name(column TYPE, …).
type CreateLogicalSource struct {
	Existing Existing
	Name     Name
	Columns  []ColumnDefinition
}

// CreatePhysicalSource is CREATE [OR REPLACE] PHYSICAL SOURCE [IF NOT EXISTS] FOR logical TYPE type [ON worker] SET(…).
type CreatePhysicalSource struct {
	Existing  Existing
	Logical   Name
	Type      Name
	Placement Name // empty: where it is read is left open
	Settings  []Setting
}

// CreateSink is CREATE [OR REPLACE] SINK [IF NOT EXISTS] name[(column TYPE, …)] TYPE type [ON worker] [SET(…)].
type CreateSink struct {
	Existing  Existing
	Name      Name
	Columns   []ColumnDefinition // none: those of the query
	Type      Name
	Placement Name
	Settings  []Setting
}

// CreateQuery is SELECT … INTO sink, or CREATE [OR REPLACE] QUERY [IF NOT EXISTS] [name] AS SELECT … INTO sink.
type CreateQuery struct {
	Existing Existing
	Name     Name // empty: it gets an id
	Select   *Select
	// Source is the text of the SELECT, as it is kept in the catalog. At is where it begins.
	Source string
	At     int
}

// Drop is DROP entity [IF EXISTS] name [MODE GRACEFUL|FORCEFUL].
type Drop struct {
	Entity Entity
	Name   Name // the id of a physical source
	// Graceful says that sources stop first and rows on their way reach the sinks.
	Graceful bool
	At       int
}

// Resume is RESUME QUERY name.
type Resume struct {
	Name Name
	At   int
}

// Get is GET or SHOW entity, with what narrows it down; empty names do not.
type Get struct {
	Entity   Entity
	Name     Name
	Logical  Name // FOR logical
	Node     Name // ON worker
	Type     Name
	State    Name
	Capacity *int64 // at least so many free slots
	At       int
}

// Explain is EXPLAIN SELECT ….
type Explain struct{ Query *CreateQuery }

// Watch is WATCH SELECT … over a table of the catalog.
type Watch struct {
	Select *Select
	At     int
}

func (*CreateWorker) statement()         {}
func (*CreateLogicalSource) statement()  {}
func (*CreatePhysicalSource) statement() {}
func (*CreateSink) statement()           {}
func (*CreateQuery) statement()          {}
func (*Drop) statement()                 {}
func (*Resume) statement()               {}
func (*Get) statement()                  {}
func (*Explain) statement()              {}
func (*Watch) statement()                {}

// Setting is a value AS a path, as in 'localhost' AS `SOURCE`.SOCKET_HOST.
type Setting struct {
	Path  string // upper case, parts joined by a dot
	Value any    // string, int64, float64, bool, or []any of these
	At    int
}

// TypeName is a type as it was written, with up to two numbers in parentheses.
type TypeName struct {
	Name Name
	Args []int64
}

// ColumnDefinition is a column of a schema.
type ColumnDefinition struct {
	Name    Name
	Type    TypeName
	NotNull bool
}

// Select is a query or subquery.
type Select struct {
	Items  []Item
	From   Table
	Join   *Join
	Where  Expr // nil: all rows
	Group  []Expr
	Window *Window // nil: none
	Having Expr
	Into   Name // empty in subqueries
	// DropOnOverflow says that rows may be lost, and are counted, where the query cannot keep up.
	DropOnOverflow bool
	// Settings are SET(value AS path, …); none in subqueries.
	Settings []Setting
	At       int
}

// Item is an expression of the select list. A nil expression is *, of Table when that has a name.
type Item struct {
	Expr  Expr
	Alias Name
	Table Name
	At    int
}

// Table is a source by name, or a subquery.
type Table struct {
	Name  Name
	Query *Select
	Alias Name
}

// Join is INNER JOIN table ON condition.
type Join struct {
	Table Table
	On    Expr
	At    int
}

// Window divides a stream by the time of its rows.
type Window struct {
	// Sliding windows begin every Advance; of tumbling ones Advance is Size.
	Sliding       bool
	Time          *Column // nil: the stream's only time
	Size, Advance time.Duration
	// Lateness is how far a row may lie behind the latest one and still be counted.
	Lateness time.Duration
	At       int
}

// Expr is an expression. Pos is the byte at which it begins; of operators, where the operator stands.
type Expr interface{ Pos() int }

// The expressions.
type (
	// Literal has the value nil, bool, int64, float64 or string.
	Literal struct {
		Value any
		At    int
	}
	// Column is a column, of Table when that has a name.
	Column struct {
		Table, Name Name
	}
	// Unary is - or NOT.
	Unary struct {
		Op string
		X  Expr
		At int
	}
	// Binary is OR AND = <> < <= > >= + - * / % || LIKE.
	Binary struct {
		Op   string
		L, R Expr
		At   int
	}
	// IsNull is IS [NOT] NULL.
	IsNull struct {
		X   Expr
		Not bool
		At  int
	}
	// In is [NOT] IN (…).
	In struct {
		X    Expr
		List []Expr
		Not  bool
		At   int
	}
	// Case is CASE [x] WHEN … THEN … [ELSE …] END.
	Case struct {
		Operand Expr // nil: conditions
		When    []When
		Else    Expr // nil: NULL
		At      int
	}
	// Cast is CAST(x AS type), x::type or TYPE(x).
	Cast struct {
		X    Expr
		Type TypeName
		At   int
	}
	// Call is a function or aggregate; Star is COUNT(*), Over LAG's partition.
	Call struct {
		Name Name
		Args []Expr
		Star bool
		Over *Over
	}
)

// When is a branch of a CASE.
type When struct{ If, Then Expr }

// Over is OVER (PARTITION BY …).
type Over struct {
	Partition []Expr
	At        int
}

// Pos returns where the expression stands.
func (e *Literal) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *Column) Pos() int {
	if e.Table.Text != "" {
		return e.Table.At
	}
	return e.Name.At
}

// Pos returns where the expression stands.
func (e *Unary) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *Binary) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *IsNull) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *In) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *Case) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *Cast) Pos() int { return e.At }

// Pos returns where the expression stands.
func (e *Call) Pos() int { return e.Name.At }
