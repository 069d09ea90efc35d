package engine

// Execution is the record of one operation, fixed in size so that measuring goroutines store it without allocating.
// Strings are ids into the run worker's error dictionary.
type Execution struct {
	// DueAt and StartedAt are nanoseconds since the Unix epoch, on the run's
	// monotonic time line. In a closed loop they are equal.
	DueAt     int64
	StartedAt int64
	// Elapsed is the latency in ns: from DueAt (open loop) or StartedAt (closed
	// loop) to the end. Service time is Elapsed − ScheduleLag − PoolWait.
	Elapsed     int64
	ScheduleLag int64
	PoolWait    int64
	// Decode is the last part of the service time: from when the first byte of the answer was seen
	// to when all of it was read and understood; for a transaction the sum of its
	// statements'. It is 0 without an answer, and where the driver does not know.
	Decode int64
	// QueryID is the database's name for the query, zero when it gave none. A
	// transaction has none of its own: its statements do.
	QueryID QueryID
	// Seq numbers the executions of one connection slot from 0. A statement inside
	// a transaction has that of its transaction.
	Seq          uint32
	ConnectionID uint32
	// Rows returned by a read, or affected by a write.
	Rows    int32
	ErrorID uint32 // 0: no error; else an id of the dictionary
	// Statement indexes the frozen list; that of a transaction is its first
	// statement. Inside a transaction it may be a control statement, from FirstControl on.
	Statement uint16
	Step      uint16
	// Position is 0 for an execution. Other records are the statements of a transaction, in the order
	// in which they were sent, from 1 (BEGIN); they precede the record of the
	// transaction, and are counted in no figure but those by statement.
	Position uint16
	// Retries counts the repetitions of an execution; for a statement of a
	// transaction it is the number of the try, from 0.
	Retries uint8
	Kind    Kind
	Warmup  bool
	Success bool
	// RolledBack: the transaction succeeded, with a ROLLBACK that the workload asked for.
	RolledBack bool
}

// FirstControl is the first statement number that is no index of the frozen list.
const FirstControl uint16 = 0xFF00

// ControlName names a control statement as records and figures do; others are "".
func ControlName(statement uint16) string {
	switch statement {
	case FirstControl:
		return "BEGIN"
	case FirstControl + 1:
		return "COMMIT"
	case FirstControl + 2:
		return "ROLLBACK"
	}
	return ""
}

// ErrorClass groups errors by what a user can do about them.
type ErrorClass string

// The error classes. Adapters map their database's codes onto them.
const (
	ErrClassTimeout       ErrorClass = "timeout"
	ErrClassConnection    ErrorClass = "connection"
	ErrClassAuth          ErrorClass = "auth"
	ErrClassSyntax        ErrorClass = "syntax"
	ErrClassConstraint    ErrorClass = "constraint"
	ErrClassSerialization ErrorClass = "serialization"
	ErrClassDeadlock      ErrorClass = "deadlock"
	ErrClassLock          ErrorClass = "lock"
	ErrClassThrottled     ErrorClass = "throttled"
	ErrClassResource      ErrorClass = "resource"
	ErrClassData          ErrorClass = "data"
	ErrClassCancelled     ErrorClass = "cancelled"
	ErrClassPlugin        ErrorClass = "plugin"
	ErrClassOther         ErrorClass = "other"
	// ErrClassDropped counts operations of an open loop that were due and never begun. They have no record.
	ErrClassDropped ErrorClass = "dropped"
)

// CodeUnknownOutcome is the code of a COMMIT, or of a write outside of transactions, that was sent and whose answer
// never came: the operation failed, and what it wrote may be there. Runs that reconnect tell it apart.
const CodeUnknownOutcome = "unknown_outcome"

// ExecutionError is one entry of a run worker's error dictionary.
type ExecutionError struct {
	Class   ErrorClass `json:"error_class"`
	Code    string     `json:"error_code"`
	Message string     `json:"error_message"`
}
