package refresh

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Refreshes keeps the definitions of derived tables, the queue of their refreshes, and the claims of
// workers. Only the clock of the store counts: neither workers nor servers say what time it is.
type Refreshes interface {
	// CreateDynamicTable saves a table that is to be refreshed at once. Its name may be taken, a source unknown, and its
	// sources may read it: then the error is an *engine.Error that says so.
	CreateDynamicTable(ctx context.Context, t Table) (Table, error)
	// DynamicTable reads a table.
	DynamicTable(ctx context.Context, name string) (Table, error)
	// UpdateDynamicTable changes what a user may change of a table, if t.Version is current, else ErrConflict. The
	// table is refreshed in whole then; one that had failed is active again, and so is one that a user changes (t.OwnerID)
	// and that was suspended because its owner had lost the right to it.
	UpdateDynamicTable(ctx context.Context, t Table) (Table, error)
	// DropDynamicTable forgets a table with its history; ErrInUse names the tables that read it.
	DropDynamicTable(ctx context.Context, name string) error
	// SetDynamicTableStatus suspends a table or lets it be refreshed again, which forgets its failures and
	// those of its subtasks.
	SetDynamicTableStatus(ctx context.Context, name string, status Status) error
	// ResumeDynamicTable is SetDynamicTableStatus(Active) by a user, whose work the refreshes of the table are from
	// then on, unless it is bundled.
	ResumeDynamicTable(ctx context.Context, name, ownerID, owner string) error
	// OwnedTables are the active tables that have an owner, by name.
	OwnedTables(ctx context.Context) ([]Table, error)
	// RevokeDynamicTable suspends an active table whose owner has lost the right to it, with the reason, and ends the
	// claims of it: ErrClaimLost for their holders. A table that is another owner's by then stays as it is.
	RevokeDynamicTable(ctx context.Context, name, ownerID, why string) error
	// RequestRefresh makes a table due now, whatever it reads; a suspended one is ErrConflict. One that is being refreshed
	// is what was asked for: nothing is added to it.
	RequestRefresh(ctx context.Context, name string) error
	// RefreshState reads all that Plan needs, with at most so many runs of each INGEST table.
	RefreshState(ctx context.Context, runs int) (State, error)
	// ScheduleRefreshes carries a plan out. What is in the queue stays as it is; several servers may do it at once.
	ScheduleRefreshes(ctx context.Context, s Schedule) error
	// ClaimRefreshes claims at most so many entries of the queue that are due and not claimed, by priority and then by
	// their due times; with kinds only those of tables of these kinds.
	ClaimRefreshes(ctx context.Context, worker string, life time.Duration, most int, kinds ...Kind) (
		[]Claim, error)
	// RenewRefresh prolongs a claim; ErrClaimLost when it has expired or is gone.
	RenewRefresh(ctx context.Context, c Claim, life time.Duration) error
	// ReleaseRefresh ends a claim: claim and entry go in one transaction with the result. A failure leaves the
	// entry to be tried again later, or ends it. Parts are put into the queue, and the table is due again when the
	// last of them is done; one that fails for good fails the table. ErrClaimLost changes nothing.
	ReleaseRefresh(ctx context.Context, c Claim, r Result) error
	// ReleaseRefreshes ends several claims, none with parts, in one transaction, and returns those that were lost.
	ReleaseRefreshes(ctx context.Context, ended []Completion) (lost []Claim, err error)
	// AbandonRefresh gives a claim back: another worker may begin, at once or after a while. A lost one is no error.
	AbandonRefresh(ctx context.Context, c Claim, after time.Duration) error
	// SweepRefreshes removes the claims that have expired, and returns how many.
	SweepRefreshes(ctx context.Context) (int, error)
	// NoteRefreshWorker says that a worker is there, by the clock of the store.
	NoteRefreshWorker(ctx context.Context, w Worker) error
	// ForgetRefreshWorker says that a worker has ended.
	ForgetRefreshWorker(ctx context.Context, name string) error
	// RefreshLoad reads how much there is to refresh.
	RefreshLoad(ctx context.Context) (Load, error)
	// RefreshHistory returns what became of a table's refreshes, newest first.
	RefreshHistory(ctx context.Context, name string, limit int) ([]Record, error)
	// PruneRefreshHistory deletes all but the newest keep lines of each table, and forgets workers that have long said
	// nothing.
	PruneRefreshHistory(ctx context.Context, keep int) error
	// AwaitRefreshes calls told whenever there may be something to schedule or to refresh, and when it has begun to
	// hear of that; it returns when it cannot hear any more, or ctx ends. It may call for nothing, and nobody may
	// rely on it alone.
	AwaitRefreshes(ctx context.Context, told func()) error
}

// UnknownSource is the ErrNotFound about a derived table that reads one that is not there.
func UnknownSource(name string) error {
	return &engine.Error{Code: engine.CodeNotFound, Cause: store.ErrNotFound,
		Message: fmt.Sprintf("The table %q reads a derived table that is not there.", name)}
}

// ReadsItself is the ErrConflict about a circle of derived tables.
func ReadsItself(name string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict,
		Message: fmt.Sprintf("The table %q would read itself, through one that reads it.", name),
		Hint:    "Tables may read each other in one direction only."}
}

// ReadBy is the ErrInUse about a derived table that others read.
func ReadBy(name string, readers []string) error {
	return &engine.Error{Code: engine.CodeConflict, Cause: store.ErrInUse,
		Message: fmt.Sprintf("The table %q is read by %s.", name, strings.Join(readers, ", ")), Hint: "Drop these first."}
}

// NotRefreshable is the ErrConflict about a derived table that cannot be refreshed by itself now.
func NotRefreshable(t Table) error {
	e := &engine.Error{Code: engine.CodeConflict, Cause: store.ErrConflict,
		Message: fmt.Sprintf("The table %q is %s.", t.Name, t.Status), Hint: "Resume it first."}
	if t.Kind != SQL {
		e.Message = fmt.Sprintf("The table %q takes runs in when they end.", t.Name)
		e.Hint = "There is nothing to refresh besides."
	}
	return e
}
