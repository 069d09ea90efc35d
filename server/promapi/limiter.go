package promapi

import (
	"context"
	"fmt"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/query"
	"github.com/loadstone-db/loadstone/server/auth"
)

// queryLimiter bounds how many queries are evaluated at once, and how many wait for those, of each user.
type queryLimiter struct{ places *query.Places }

// newQueryLimiter lets so many in at a time. One user may have all of them but one while nobody else asks: a dashboard
// is many queries.
func newQueryLimiter(inside, waiting int) *queryLimiter {
	return &queryLimiter{query.NewPlaces(query.PlaceLimits{Total: inside, PerUser: inside, Reserved: 1,
		Light: 3 * time.Second, Waiting: waiting, Wait: maxWait})}
}

// acquire waits for room; the one that it lets in has to leave.
func (c *queryLimiter) acquire(ctx context.Context) (leave func(), err error) {
	id, _ := auth.IdentityOf(ctx)
	leave, err = c.places.Acquire(ctx, id.User.UserID)
	switch {
	case err == nil:
		return leave, nil
	case engine.HasCode(err, engine.CodeRateLimited):
		return nil, &failure{"unavailable", fmt.Errorf("%w", err)}
	}
	return nil, fmt.Errorf("waiting for other queries: %w", err)
}
