package store

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// RunWishKind is what is wanted of a run.
type RunWishKind string

// What can be wanted of a run.
const (
	WishStop           RunWishKind = "STOP"
	WishStopEnrichment RunWishKind = "STOP_ENRICHMENT"
)

// RunWish is what somebody wants of a run, asked at a server that does not carry it.
type RunWish struct {
	// Seq rises with each wish that is noted.
	Seq   int64
	RunID string
	Kind  RunWishKind
	// By is who asked, and Server where.
	By, Server string
	AskedAt    engine.Time
	// AnsweredBy is the server that has done it, or has seen that there is nothing to do;
	// empty until then.
	AnsweredBy string
}

// RunWishes bring what is wanted of a run from the server that is asked to the one that carries
// it, or that takes it over.
type RunWishes interface {
	// AskOfRun notes a wish and returns its Seq; the same that is noted already and not
	// answered is that one. ErrNotFound: there is no such run.
	AskOfRun(ctx context.Context, w RunWish) (seq int64, err error)
	// RunWish reads one; ErrNotFound when its run is deleted.
	RunWish(ctx context.Context, seq int64) (RunWish, error)
	// OpenRunWishes returns those that nobody has answered, oldest first.
	OpenRunWishes(ctx context.Context) ([]RunWish, error)
	// AnswerRunWish notes that a wish is done. Repeating it is harmless; the first answer stays.
	AnswerRunWish(ctx context.Context, seq int64, server string) error
	// HearRunWishes calls heard as soon as it listens, and whenever a wish has been noted since.
	// It returns when ctx ends, or listening has failed.
	HearRunWishes(ctx context.Context, heard func()) error
}
