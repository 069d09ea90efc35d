package cli

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
)

// TestOneNameIsTakenAgainAndAgain: a query and its sink are created and dropped 60 times under one name, 200 times in
// make check. The catalog is what it was, and the server has no more goroutines than before.
func TestOneNameIsTakenAgainAndAgain(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	s := streamsServer{clitest.NewProgram(t).Serve()}
	count := regexp.MustCompile(`(?m)^go_goroutines (\d+)`)
	goroutines := func() int {
		t.Helper()
		n, err := strconv.Atoi(count.FindStringSubmatch(s.MustGet("/metrics"))[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const show = "SHOW LOGICAL SOURCES; SHOW PHYSICAL SOURCES; SHOW SINKS; SHOW QUERIES"
	before := s.done(show)
	first, rounds := 0, 60
	if clitest.Whole() {
		rounds = 200
	}
	for round := range rounds {
		s.done("CREATE SINK again TYPE PRINT; CREATE QUERY again AS SELECT runId FROM run_events INTO again")
		if round%4 == 0 {
			s.until("again", "RUNNING")
		}
		s.done("DROP QUERY again" + []string{"", " MODE GRACEFUL"}[round%2])
		s.until("again", "")
		s.done("DROP SINK again")
		if round == 20 {
			first = goroutines()
		}
	}
	if after := s.done(show); after != before {
		t.Errorf("something is left:\n%s\n%s", before, after)
	}
	last := goroutines()
	for end := time.Now().Add(10 * time.Second); last > first+10 && time.Now().Before(end); time.Sleep(time.Second) {
		last = goroutines()
	}
	if last > first+10 {
		t.Errorf("%d goroutines after 20 rounds, %d after %d", first, last, rounds)
	}
	t.Logf("%d goroutines after 20 rounds, %d after %d", first, last, rounds)
	if message := s.Out.String(); strings.Contains(message, "panic") {
		t.Error(message)
	}
	s.Stop()
}
