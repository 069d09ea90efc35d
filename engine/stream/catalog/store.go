// This part is the contract of what keeps the catalog of streams: one that is shared by all servers, and read and
// written in transactions. memstore and storage/postgres serve it, keeptest is its conformance suite.

package catalog

import (
	"context"
	"time"
)

// Store keeps the catalog. Errors are those of engine/store: ErrUnavailable, ErrFenced.
type Store interface {
	// CatalogContents reads all tables as they were at one moment.
	CatalogContents(ctx context.Context) (Contents, error)
	// ChangeCatalog has the catalog changed, and keeps the difference: all of it or nothing, as if nobody else had
	// changed anything meanwhile. change may be called several times, each time with the catalog as it is then. Its
	// error is returned as it is. Of queries that are there it keeps what is desired, which workers they have, with what
	// these do, and that they are gone. The change
	// sees at least the queries that it needs, those whose name may be given to the next one that has none, and of all
	// others the slots that they take.
	ChangeCatalog(ctx context.Context, needs Scope, change func(*Catalog) error) error
	// ClaimQueries says that owner is alive for as long as the lease, and makes it the owner of all queries that have
	// none, or one whose lease is over. The epoch of each rises; n is how many there were.
	ClaimQueries(ctx context.Context, owner string, lease time.Duration) (n int, err error)
	// AdvanceQuery keeps state, failure and fragments of a query, whose revision rises; one that is STOPPED is removed.
	// ErrFenced: the query has another owner, epoch or revision, or is gone.
	AdvanceQuery(ctx context.Context, q Query) error
	// SetWorkers keeps which workers the cluster has: those that are not there yet are added, the others get their
	// state; the slots of those that are there stay as they are. What is the same is not written.
	SetWorkers(ctx context.Context, workers []Worker) error
	// WatchCatalog calls heard as soon as it listens, and whenever something has changed since. It returns when ctx
	// ends, or listening has failed.
	WatchCatalog(ctx context.Context, heard func()) error
}
