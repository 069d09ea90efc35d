package promapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
)

// TestADashboardOfOneUserLeavesRoomForAnother: queries of a user that are many leave a place to somebody else, and say
// so when even their queue is full.
func TestADashboardOfOneUserLeavesRoomForAnother(t *testing.T) {
	t.Parallel()
	limiter := newQueryLimiter(4, 1)
	as := func(user string) context.Context {
		return auth.WithIdentity(t.Context(), auth.Identity{User: store.User{UserID: user}})
	}
	for range 3 {
		leave, err := limiter.acquire(as("a"))
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	ctx, cancel := context.WithTimeout(as("a"), time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { _, err := limiter.acquire(ctx); ended <- err }()
	time.Sleep(200 * time.Millisecond) // it waits then
	if _, err := limiter.acquire(
		as("a"),
	); kindOf(err) != "unavailable" ||
		!strings.Contains(err.Error(), "of your queries") {
		t.Errorf("a fifth: %v", err)
	}
	leave, err := limiter.acquire(as("b"))
	if err != nil {
		t.Fatalf("another user: %v", err)
	}
	leave()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "waiting for other queries") {
		t.Errorf("the fourth: %v", err)
	}
}
