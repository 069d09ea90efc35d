package record

import (
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// SchemaVersion is the version of the columns below. It rises when a column
// changes its meaning or rows of a new meaning appear; a reader refuses a higher
// one. Version 2 brought the statements of transactions: rows whose position is not
// 0. Version 3 brought values of server_query_id, which was all null until then.
// Version 4 brought the time of decoding.
const SchemaVersion = 4

// KindExecutions is engine.Artifact.Kind of the parts this package writes.
const KindExecutions = "executions"

// The keys of a part's metadata.
const (
	metaSchemaVersion = "parquet_schema_version"
	metaArtifactID    = "artifact_id"
	metaRunID         = "run_id"
	metaTestID        = "test_id"
	metaWorkerID      = "worker_id"
	metaMinTime       = "min_ts_ns"
	metaMaxTime       = "max_ts_ns"
	metaCreatedAt     = "created_at"
	metaOpenLoop      = "open_loop"
)

// Column is a column of a part, in the order of the file.
type Column int

// The columns of a part. Strings are UTF-8. Timestamps are UTC with
// nanoseconds; durations are DOUBLE milliseconds that hold whole nanoseconds
// exactly. Columns marked null-able are null where they do not apply.
const (
	ColRunID Column = iota
	ColResultID
	ColWorkerID
	ColConnectionID // uint32
	ColSeq          // uint32, numbers the executions of one connection slot
	ColStep         // int32
	ColPhase        // WARMUP or MEASUREMENT
	ColWarmup
	ColKind // engine.Kind's name
	ColStatementID
	ColDueAt
	ColStartedAt
	ColAppElapsedMs
	ColScheduleLagMs
	ColPoolWaitMs
	ColRows // int32
	ColSuccess
	ColErrorClass   // null-able
	ColErrorCode    // null-able
	ColErrorMessage // null-able
	ColRetries      // int32
	// ColServerQueryID (null-able) is the UUID form of engine.QueryID, null for
	// targets that give none and for transactions, whose statements have their own.
	ColServerQueryID
	// ColPosition (int32) is 0 for an execution. Other rows are statements inside
	// the transaction of the same connection_id and seq, numbered from 1 (BEGIN);
	// retries is then the number of the try. They are no executions of their own.
	ColPosition
	ColRolledBack // a transaction that ended with a ROLLBACK of its own: a success
	// ColDecodeNs (int64) is the end of the service time that passed after the first byte of
	// the answer, in nanoseconds; as deltas it takes a quarter of a double.
	ColDecodeNs
	numColumns
)

type columnDef struct {
	name     string
	typ      format.Type
	optional bool
	logical  format.LogicalTypeValue
	// converted is the older form of logical, for older readers; there is none
	// for nanosecond timestamps.
	converted thrift.Null[deprecated.ConvertedType]
	// since is the version that brought the column; in older parts it reads as zeros.
	since int
}

// columnDefs is the schema. It is built on demand, once per part, so that no
// package state is shared.
func columnDefs() [numColumns]columnDef {
	text := func(name string) columnDef {
		return columnDef{name: name, typ: format.ByteArray, logical: &format.StringType{},
			converted: thrift.New(deprecated.UTF8)}
	}
	nullable := func(d columnDef) columnDef { d.optional = true; return d }
	uint32s := func(name string) columnDef {
		return columnDef{name: name, typ: format.Int32, logical: &format.IntType{BitWidth: 32},
			converted: thrift.New(deprecated.Uint32)}
	}
	instant := func(name string) columnDef {
		unit := format.TimeUnit{Value: &format.NanoSeconds{}}
		return columnDef{name: name, typ: format.Int64, logical: &format.TimestampType{IsAdjustedToUTC: true, Unit: unit}}
	}
	since := func(version int, d columnDef) columnDef { d.since = version; return d }
	plain := func(name string, t format.Type) columnDef { return columnDef{name: name, typ: t} }
	return [numColumns]columnDef{
		ColRunID:         text("run_id"),
		ColResultID:      text("test_id"),
		ColWorkerID:      text("worker_id"),
		ColConnectionID:  uint32s("connection_id"),
		ColSeq:           uint32s("seq"),
		ColStep:          plain("step", format.Int32),
		ColPhase:         text("phase"),
		ColWarmup:        plain("warmup", format.Boolean),
		ColKind:          text("kind"),
		ColStatementID:   text("statement_id"),
		ColDueAt:         instant("due_at"),
		ColStartedAt:     instant("started_at"),
		ColAppElapsedMs:  plain("app_elapsed_ms", format.Double),
		ColScheduleLagMs: plain("schedule_lag_ms", format.Double),
		ColPoolWaitMs:    plain("pool_wait_ms", format.Double),
		ColRows:          plain("rows", format.Int32),
		ColSuccess:       plain("success", format.Boolean),
		ColErrorClass:    nullable(text("error_class")),
		ColErrorCode:     nullable(text("error_code")),
		ColErrorMessage:  nullable(text("error_message")),
		ColRetries:       plain("retries", format.Int32),
		ColServerQueryID: nullable(text("server_query_id")),
		ColPosition:      since(2, plain("position", format.Int32)),
		ColRolledBack:    since(2, plain("rolled_back", format.Boolean)),
		ColDecodeNs:      since(4, plain("decode_ns", format.Int64)),
	}
}

func schemaElements(defs *[numColumns]columnDef) []format.SchemaElement {
	elements := make([]format.SchemaElement, 0, numColumns+1)
	elements = append(elements, format.SchemaElement{Name: "execution", NumChildren: thrift.New(int32(numColumns))})
	for _, d := range defs {
		e := format.SchemaElement{
			Name:           d.name,
			Type:           thrift.New(d.typ),
			RepetitionType: thrift.New(format.Required),
			ConvertedType:  d.converted,
			LogicalType:    format.LogicalType{Value: d.logical},
		}
		if d.optional {
			e.RepetitionType = thrift.New(format.Optional)
		}
		elements = append(elements, e)
	}
	return elements
}
