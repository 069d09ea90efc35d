package engine

import (
	"cmp"
	"slices"
	"strings"
)

// ValueType is the type of a bind value, as plugins name it.
type ValueType string

// The bind types of plugin ABI version 1. Numerics and UUIDs travel as text.
const (
	TypeI64       ValueType = "i64"
	TypeF64       ValueType = "f64"
	TypeText      ValueType = "text"
	TypeBytes     ValueType = "bytes"
	TypeBool      ValueType = "bool"
	TypeTimestamp ValueType = "timestamp"
)

// Bind is one parameter of a statement.
type Bind struct {
	Name string    `json:"name"`
	Type ValueType `json:"type"`
	// Column is the table column the value is for or compared with, if any.
	Column string `json:"column,omitempty"`
}

// Statement is one entry of a run's frozen statement list. Its index in that
// list is what a batch names, and nothing outside the list is ever executed.
type Statement struct {
	ID    string `json:"id"`
	Kind  Kind   `json:"kind"`
	Table string `json:"table,omitempty"`
	// SQL has positional parameters in the target's own dialect ($1, $2 … or ?).
	SQL   string `json:"sql"`
	Binds []Bind `json:"binds"`
	// BindOrder maps SQL parameter i to Binds[BindOrder[i]]; nil means the same order.
	BindOrder []int `json:"bind_order,omitempty"`
	// Columns names the result columns the workload reads, if any.
	Columns []string `json:"columns,omitempty"`
	Writes  bool     `json:"writes"`
	// Transaction names the transactions that begin with this statement, in
	// figures and records; "" means that they go by its ID.
	Transaction string `json:"transaction,omitempty"`
	// NoRowsHint says what to do when the statement finds no rows, in the workload's words; "" leaves it open.
	NoRowsHint string `json:"no_rows_hint,omitempty"`
}

// Column is a column of a target table.
type Column struct {
	Name string `json:"name"`
	// Type is the nearest plugin type; DBType is the database's own.
	Type     ValueType `json:"type"`
	DBType   string    `json:"db_type"`
	Nullable bool      `json:"nullable"`
	// HasDefault is true for columns the database fills (default, identity).
	HasDefault bool `json:"has_default"`
	// Generated columns cannot be written at all.
	Generated bool `json:"generated"`
	// MaxLength bounds text, in characters; 0 means unbounded.
	MaxLength int `json:"max_length,omitempty"`
	// Unique columns need a new value in every row (a unique index besides the key).
	Unique bool `json:"unique,omitempty"`
	// Fresh: the column's default is another value in each row, such as a sequence's.
	Fresh bool `json:"fresh,omitempty"`
	// Top is the largest value of a unique column, as a whole number (µs of times); nil where that is not known.
	Top *int64 `json:"top,omitempty"`
}

// Constraint is what binds the values of columns of a table.
type Constraint struct {
	Name string `json:"name,omitempty"`
	// Kind is check, foreign_key, unique, exclusion, trigger, partition, domain, referenced (a foreign key of the table
	// References refuses DELETE), or pointed_at (foreign keys refuse another value in the columns).
	Kind    string   `json:"kind"`
	Columns []string `json:"columns"`
	// Equal are the columns of an exclusion that are compared with =.
	Equal      []string `json:"equal,omitempty"`
	References string   `json:"references,omitempty"`
	// Self: a foreign key refers to its own table.
	Self bool `json:"self,omitempty"`
	// Partial: a unique index that holds for some of the rows. NullsEqual: NULLs collide as well.
	Partial    bool `json:"partial,omitempty"`
	NullsEqual bool `json:"nulls_equal,omitempty"`
	// Parents is how many rows a foreign key may refer to, as far as they were looked for; nil where they were not.
	Parents *int64 `json:"parents,omitempty"`
	// Left is how many combinations of values that other tables have the table does not have yet, in the columns of a
	// unique constraint that foreign keys bind, as far as they were looked for; nil where they were not.
	Left *int64 `json:"left,omitempty"`
}

// Table is what is known of a target table when load starts. It reaches the
// workload in ls_open, under its logical name.
type Table struct {
	Name string `json:"name"`
	// PhysicalName is the table's name in the database, as the adapter quoted it.
	PhysicalName string   `json:"physical_name"`
	Columns      []Column `json:"columns"`
	Key          []string `json:"key"`
	Rows         int64    `json:"rows"`
	// RowsExact is false when Rows is the planner's estimate.
	RowsExact bool   `json:"rows_exact"`
	KeyMin    *int64 `json:"key_min"`
	KeyMax    *int64 `json:"key_max"`
	// Dense is true when every integer from KeyMin to KeyMax is a key.
	Dense bool `json:"dense"`
	// DenseMax is known for some tables that are not dense: every integer from
	// KeyMin to DenseMax is a key. Inserts of earlier runs leave such tables.
	DenseMax *int64 `json:"dense_max,omitempty"`
	// KnownKeys is how many of the table's keys operations can choose among, where they are sampled, of
	// Rows rows. 0: none were sampled.
	KnownKeys int64 `json:"known_keys,omitempty"`
	// Own: Loadstone made the table, or is going to.
	Own bool `json:"own,omitempty"`
	// Dialect is the adapter's, for workloads whose statements depend on it.
	Dialect string `json:"dialect,omitempty"`
	// Constraints bind columns, as far as the adapter tells.
	Constraints []Constraint `json:"constraints,omitempty"`
	// Nonce is another number each time that the table is looked at.
	Nonce int64 `json:"nonce,omitempty"`
}

// Pool holds sampled rows of a table: the key's columns where keys are not dense integers, and columns whose values
// cannot be invented (foreign keys, checks, enums …); at most 1 MB.
type Pool struct {
	Table   string   `json:"table"`
	Columns []string `json:"columns"`
	// Rows are the sampled values in plugin types: numbers, strings, booleans or null.
	Rows [][]any `json:"rows"`
	// Values: the rows are whole ones to take values from, and not there for their keys.
	Values bool `json:"values,omitempty"`
	// Free: the rows are parts of rows that the table does not have yet.
	Free *FreeRows `json:"free,omitempty"`
	// Keys are keys of the whole table, many more than Rows has. Plugins name them by their number, and
	// the host puts the values in.
	Keys *PackedKeys `json:"keys,omitempty"`
}

// FreeRows says how the rows of a pool go together to new rows, in the columns of a unique constraint that foreign keys
// bind. The first Left rows have values of the first Columns columns, the others, where there are any, of the rest:
// each of the first goes with each of the others, but for those that Taken has.
type FreeRows struct {
	// Constraint are the columns of the constraint.
	Constraint []string `json:"constraint"`
	Columns    int      `json:"columns"`
	Left       int      `json:"left"`
	// Taken has a text for each of the first rows, "" where all of the others are free: bit i%4 of hexadecimal digit i/4
	// says that row i of the others is not.
	Taken []string `json:"taken,omitempty"`
}

// Shown is the plan without values of the target's rows: what pages, reports and files have of it.
func (p *Plan) Shown() *Plan {
	if p == nil {
		return p
	}
	top := slices.ContainsFunc(p.Tables, func(t Table) bool {
		return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Top != nil })
	})
	if p.Pools == nil && !top {
		return p
	}
	shown := *p
	shown.Pools = nil
	if top {
		shown.Tables = slices.Clone(p.Tables)
		for i := range shown.Tables {
			columns := slices.Clone(shown.Tables[i].Columns)
			for j := range columns {
				columns[j].Top = nil
			}
			shown.Tables[i].Columns = columns
		}
	}
	return &shown
}

// PluginRef names the exact plugin that a run uses.
type PluginRef struct {
	Kind    string `json:"kind" enum:"workload,adapter"`
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
}

// Plan is everything a node needs to host a run worker, decided before anything connects: the frozen statements, the
// tables as inspected, the plugins by hash. It is stored with the run and shown before it.
type Plan struct {
	Driver string `json:"driver"`
	// Warehouse is the template's; it overrides the connection's.
	Warehouse string    `json:"warehouse,omitempty"`
	Workload  PluginRef `json:"workload"`
	Adapter   PluginRef `json:"adapter"`
	Session   []string  `json:"session,omitempty"` // executed on every connect
	// Prepared is the template's: whether sessions keep prepared statements; nil leaves it to the driver.
	Prepared   *bool       `json:"prepared,omitempty"`
	Statements []Statement `json:"statements"`
	Tables     []Table     `json:"tables"`
	// Pools are values of the target's rows: they are stored sealed, and never shown.
	Pools    []Pool `json:"pools,omitempty"`
	KeySlots int    `json:"key_slots"`
	// PoolsUnreadable says why the pools that the plan has cannot be read ("were sealed …"); "" where they can.
	PoolsUnreadable string `json:"-"`
	// Restore is SQL that sets the target back when everything about the run is over.
	Restore []string `json:"restore,omitempty"`
	// HousekeepingWarehouse is the one that the adapter names for what is asked beside the load, where the run's own is
	// made for queries only. The template's comes before it.
	HousekeepingWarehouse string `json:"housekeeping_warehouse,omitempty"`
	// LeastCost is what the run costs at least; nil where nothing is paid by the hour, or nothing is known about it.
	LeastCost *LeastCost `json:"least_cost,omitempty"`
	// Burst: the target's processors are slowed down when saved credits are used up (BurstYes), or may be ("unknown").
	Burst string `json:"burst,omitempty"`
	// MissingCapabilities are the abilities that the target's server was found not to have.
	MissingCapabilities []string `json:"lacks,omitempty"`
	// ErrorClasses maps error codes, or prefixes of them, onto classes; the longest match wins.
	ErrorClasses map[string]ErrorClass `json:"error_classes,omitempty"`
}

// BurstYes is Plan.Burst of a target of which it is known.
const BurstYes = "yes"

// Housekeeping is the warehouse on which polls and enrichment of a run on this target execute: the template's, else the
// adapter's, else that of the load.
func (p *Plan) Housekeeping(t Target) string {
	if t.Warehouse == "" {
		return t.HousekeepingWarehouse // what is polled is the session's own
	}
	return cmp.Or(t.HousekeepingWarehouse, p.HousekeepingWarehouse, t.Warehouse)
}

// Suspends tells whether the run has resumed its warehouse, and suspends it when everything is over. Restore may also
// take tables away from a warehouse that was up.
func (p *Plan) Suspends() bool {
	return slices.ContainsFunc(p.Restore, func(sql string) bool { return strings.HasSuffix(sql, " SUSPEND") })
}
