package snowflake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

// TestOnlyWhatMayBeReached: an account outside of the list is refused in words, and soon.
func TestOnlyWhatMayBeReached(t *testing.T) {
	p, err := egress.Parse([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	db, err := snowflake.NewDriverWithPolicy(p).Open(target.Config{ConnectTimeout: 10 * time.Second,
		DSN: secret.New("u:p@127.0.0.1:9/DB?account=a&protocol=http")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	began := time.Now()
	_, err = db.Check(t.Context())
	if !engine.HasCode(err, engine.CodeTarget) || !strings.Contains(err.Error(), "not among the addresses") {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}
