package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/deploy/program"
)

// streamAttacks are continuous queries that take what they can of a server: its memory, and that it can end them.
var streamAttacks = []attack{
	{4, "ten continuous queries with wide expressions over rows of 20 KB", tenQueries(func(int) string {
		return "SELECT " + listed(
			300,
			func(i int) string { return fmt.Sprintf("k || k || '%d' AS c%d", i, i) },
		) + " FROM wide"
	})},
	{4, "ten continuous queries that keep all rows", tenQueries(func(int) string {
		return "SELECT v, MAX(k) AS a, LAST(k || k) AS b FROM wide GROUP BY v WINDOW TUMBLING(ts, SIZE 1 DAY)"
	})},
	{4, "ten continuous queries of all kinds", tenQueries(func(i int) string {
		return []string{
			"SELECT " + strings.Repeat("k || ", 2000) + "k AS x FROM wide",
			"SELECT " + strings.Repeat("CONCAT(", 50) + "k" + strings.Repeat(", k)", 50) + " AS x FROM wide",
			"SELECT " + strings.Repeat("UPPER(LOWER(", 90) + "k" + strings.Repeat("))", 90) + " AS x FROM wide",
			"SELECT " + listed(50, func(i int) string {
				return fmt.Sprintf("k || k LIKE '%%' || k || 'b%d' AS c%d", i, i)
			}) + " FROM wide",
			"SELECT v IN (" + listed(3000, func(i int) string { return strconv.Itoa(-i) }) + ") AS x FROM wide",
			"SELECT a.k AS a, b.k AS b FROM wide AS a JOIN wide AS b ON a.one = b.one WINDOW TUMBLING(ts, SIZE 1 DAY)",
			"SELECT k || k AS x, v, COUNT(*) AS n FROM wide GROUP BY k || k, v WINDOW TUMBLING(ts, SIZE 1 DAY)",
			"SELECT LAG(k || k, 1000) OVER (PARTITION BY v) AS x FROM wide",
			"SELECT v, QUANTILE(ts, 0.9) AS q FROM wide GROUP BY v WINDOW SLIDING(ts, SIZE 1 DAY, ADVANCE BY 1 SEC)",
			"SELECT " + listed(300, func(i int) string {
				return fmt.Sprintf("CASE WHEN v > %d THEN k ELSE k || k END AS c%d", i, i)
			}) + " FROM wide",
		}[i]
	})},
	{4, "a source and a sink that do not answer", silent},
	{4, "20 000 statements in a group", func(ctx context.Context, s *stage) (string, error) {
		var took time.Duration
		for _, c := range s.users[oscar].tokens {
			began := time.Now()
			err := statements(ctx, c, strings.Repeat("SHOW SINKS;", 20_000))
			if err := refused(err, "at most 1000 statements"); err != nil {
				return "", err
			}
			took = max(took, time.Since(began))
		}
		return fmt.Sprintf("refused after %v, and the answer says how many may be", took.Round(time.Millisecond)), nil
	}},
	{4, "a viewer's WATCH that takes for ever", endlessWatch},
}

func listed(n int, one func(i int) string) string {
	var all []string
	for i := range n {
		all = append(all, one(i))
	}
	return strings.Join(all, ", ")
}

// maxGrowth is how many MB a server may take above what it takes idle, and maxDrop how long a query may take to end.
const (
	maxGrowth = 300
	maxDrop   = 5 * time.Second
)

func statements(ctx context.Context, c *program.Client, sql string) error {
	return c.Do(ctx, http.MethodPost, "/api/v1/streams/statements", map[string]any{"sql": sql}, nil)
}

// residentMB is how much memory a process has.
func residentMB(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	line, _, _ := strings.Cut(rest, "\n")
	kb, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "kB")))
	return kb >> 10
}

// watchMemory returns what the servers have taken at most above what they take now, once it is asked.
func (s *stage) watchMemory() (growth func() int) {
	stop := make(chan struct{})
	most := make([]int, len(s.servers))
	idle := make([]int, len(s.servers))
	for i, p := range s.servers {
		idle[i] = residentMB(p.PID())
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			for i, p := range s.servers {
				most[i] = max(most[i], residentMB(p.PID())-idle[i])
			}
		}
	})
	return func() int {
		close(stop)
		watching.Wait()
		total := 0
		for _, m := range most {
			total = max(total, m)
		}
		return total
	}
}

// queries are the names of those that begin so, with their states.
func queries(ctx context.Context, c *program.Client, prefix string) (map[string]string, error) {
	var all struct {
		Queries []struct{ Name, State string }
	}
	err := c.Do(ctx, http.MethodGet, "/api/v1/streams", nil, &all)
	found := map[string]string{}
	for _, q := range all.Queries {
		if strings.HasPrefix(q.Name, prefix) {
			found[q.Name] = q.State
		}
	}
	return found, err
}

// dropAll drops queries and returns how long it took until none of them was left.
func dropAll(ctx context.Context, c *program.Client, prefix string) (time.Duration, error) {
	there, err := queries(ctx, c, prefix)
	if err != nil {
		return 0, err
	}
	var drop []string
	for name := range there {
		drop = append(drop, "DROP QUERY "+name+" FORCEFUL")
	}
	began := time.Now()
	if len(drop) > 0 {
		if err := statements(ctx, c, strings.Join(drop, ";")); err != nil {
			return 0, err
		}
	}
	err = program.Until(ctx, time.Minute, "the end of queries that were dropped", func() (bool, error) {
		left, err := queries(ctx, c, prefix)
		for name, state := range left {
			if state == "STOPPING_STUCK" {
				return false, fmt.Errorf("%s is STOPPING_STUCK", name)
			}
		}
		return err == nil && len(left) == 0, err
	})
	if took := time.Since(began); err == nil && took > maxDrop {
		return took, fmt.Errorf("they went on for %v after they were dropped", took)
	}
	return time.Since(began), err
}

// tenQueries starts ten queries at once, and looks at the memory of the servers, at a query beside them, and how long
// it takes to drop them.
func tenQueries(query func(i int) string) func(context.Context, *stage) (string, error) {
	return func(ctx context.Context, s *stage) (string, error) {
		if err := s.wideRows(); err != nil {
			return "", err
		}
		oscar, olga := s.users[oscar].tokens[0], s.users[olga].tokens[0]
		prefix := fmt.Sprintf("bomb%d_", time.Now().UnixNano())
		if err := statements(ctx, oscar, fmt.Sprintf(`CREATE LOGICAL SOURCE wide(ts INT64, v INT64, one INT64, k TEXT);
			CREATE PHYSICAL SOURCE FOR wide TYPE FILE SET('wide.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
			CREATE SINK %[1]sp TYPE PRINT`, prefix)); err != nil {
			return "", err
		}
		beside := prefix + "beside"
		if err := statements(
			ctx,
			olga,
			"CREATE QUERY "+beside+" AS SELECT runId, COUNT(*) AS n FROM heartbeats GROUP BY runId "+
				"WINDOW TUMBLING(timestamp, SIZE 1 SEC) INTO "+prefix+"p",
		); err != nil {
			return "", err
		}
		if err := until(ctx, olga, beside, "RUNNING"); err != nil {
			return "", err
		}
		growth := s.watchMemory()
		var all []string
		for i := range 10 {
			all = append(all, fmt.Sprintf("CREATE QUERY %s%d AS %s INTO %sp", prefix, i, query(i), prefix))
		}
		err := statements(ctx, oscar, strings.Join(all, ";"))
		select {
		case <-time.After(6 * time.Second):
		case <-ctx.Done():
		}
		there, listing := queries(ctx, oscar, prefix)
		took, dropping := dropAll(ctx, oscar, prefix)
		grown := growth()
		cleaning := statements(ctx, oscar, fmt.Sprintf(`DROP SINK %sp;`, prefix))
		if err := errors.Join(err, listing, dropping, cleaning, s.noWideRows(ctx, oscar)); err != nil {
			return "", err
		}
		if state := there[beside]; state != "RUNNING" {
			return "", fmt.Errorf("a query of another operator is %s beside them", state)
		}
		if grown > maxGrowth {
			return "", fmt.Errorf("a server took %d MB more than idle", grown)
		}
		return fmt.Sprintf("%d MB above idle at most; dropped after %v", grown, took.Round(100*time.Millisecond)), nil
	}
}

// until waits until a query has a state.
func until(ctx context.Context, c *program.Client, name, state string) error {
	return program.Until(ctx, time.Minute, name+" is "+state, func() (bool, error) {
		all, err := queries(ctx, c, name)
		return all[name] == state, err
	})
}

// wideRows puts a file of rows of 20 KB where the servers read it.
func (s *stage) wideRows() error {
	text := strings.Repeat("abcdefghi ", 2048)
	for i := range s.servers {
		f, err := os.Create(filepath.Join(s.dataDir(i), "streams", "wide.csv"))
		if err != nil {
			return err
		}
		for row := range 3000 {
			if _, err = fmt.Fprintf(f, "%d,%d,1,%s\n", row, row, text); err != nil {
				break
			}
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// noWideRows removes what reads them.
func (s *stage) noWideRows(ctx context.Context, c *program.Client) error {
	var all struct {
		Sources []struct {
			Name     string
			Physical []struct{ ID int64 }
		}
	}
	err := c.Do(ctx, http.MethodGet, "/api/v1/streams", nil, &all)
	for _, source := range all.Sources {
		if source.Name != "wide" {
			continue
		}
		for _, p := range source.Physical {
			err = errors.Join(err, statements(ctx, c, fmt.Sprintf("DROP PHYSICAL SOURCE %d", p.ID)))
		}
		err = errors.Join(err, statements(ctx, c, "DROP LOGICAL SOURCE wide"))
	}
	for i := range s.servers {
		err = errors.Join(err, os.Remove(filepath.Join(s.dataDir(i), "streams", "wide.csv")))
	}
	return err
}

// silent has a query read from one who says nothing, and another write to one who does not answer.
func silent(ctx context.Context, s *stage) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer func() { _ = c.Close() }() // with the listener: nothing is said meanwhile
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	c := s.users[oscar].tokens[0]
	prefix := fmt.Sprintf("silent%d_", time.Now().UnixNano())
	if err := statements(ctx, c, fmt.Sprintf(`CREATE LOGICAL SOURCE %[1]ss(x INT64);
		CREATE PHYSICAL SOURCE FOR %[1]ss TYPE TCP SET('127.0.0.1' AS SOURCE.SOCKET_HOST, %[2]d AS SOURCE.SOCKET_PORT,
			'CSV' AS PARSER.TYPE);
		CREATE SINK %[1]sp TYPE PRINT; CREATE SINK %[1]sw TYPE WEBHOOK SET('http://127.0.0.1:%[2]d/' AS SINK.URL);
		CREATE LOGICAL SOURCE %[1]sf(x INT64);
		CREATE PHYSICAL SOURCE FOR %[1]sf TYPE FILE SET('%[1]s.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE)`, prefix,
		port)); err != nil {
		return "", err
	}
	for i := range s.servers {
		if err := os.WriteFile(filepath.Join(s.dataDir(i), "streams", prefix+".csv"), []byte("1\n2\n"), 0o600); err != nil {
			return "", err
		}
	}
	if err := statements(ctx, c, fmt.Sprintf("CREATE QUERY %[1]sq1 AS SELECT x FROM %[1]ss INTO %[1]sp; "+
		"CREATE QUERY %[1]sq2 AS SELECT x FROM %[1]sf INTO %[1]sw", prefix)); err != nil {
		return "", err
	}
	for _, q := range []string{"q1", "q2"} {
		if err := until(ctx, c, prefix+q, "RUNNING"); err != nil {
			return "", err
		}
	}
	time.Sleep(time.Second) // rows are on their way
	took, err := dropAll(ctx, c, prefix)
	return fmt.Sprintf("dropped after %v", took.Round(100*time.Millisecond)), err
}

// endlessWatch has a viewer watch by a condition that takes for ever, and looks whether another one is answered.
func endlessWatch(ctx context.Context, s *stage) (string, error) {
	c := s.users[oscar].tokens[0]
	name := fmt.Sprintf("watched%d", time.Now().UnixNano())
	text := strings.Repeat("a", 400_000)
	if err := statements(
		ctx,
		c,
		fmt.Sprintf("CREATE SINK %[1]s TYPE PRINT; CREATE QUERY %[1]s AS SELECT runId, '%[2]s' AS x "+
			"FROM heartbeats INTO %[1]s", name, text),
	); err != nil {
		return "", err
	}
	long := listed(40, func(i int) string { return fmt.Sprintf("statement LIKE '%%%sb%d'", text[:100], i) })
	heavy := "WATCH SELECT name FROM queries WHERE " + strings.ReplaceAll(long, ", ", " OR ")
	ask := func(u user, statement string) (string, time.Duration, error) {
		asking, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(asking, http.MethodGet, u.tokens[0].Base+"/api/v1/streams/watch?sql="+
			url.QueryEscape(statement), nil)
		if err != nil {
			return "", 0, err
		}
		req.Header.Set("Authorization", "Bearer "+u.tokens[0].Token)
		began := time.Now()
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", 0, err
		}
		defer func() { _ = res.Body.Close() }()
		first := make([]byte, 200)
		n, err := res.Body.Read(first)
		if n > 0 {
			err = nil
		}
		return string(first[:n]), time.Since(began), err
	}
	var asking sync.WaitGroup
	for range 5 {
		asking.Go(func() { _, _, _ = ask(s.users[vera], heavy) })
	}
	time.Sleep(200 * time.Millisecond)
	seen, took, err := ask(s.users[olga], "WATCH SELECT name FROM sinks")
	asking.Wait()
	_, dropping := dropAll(ctx, c, name)
	if err := errors.Join(err, dropping, statements(ctx, c, "DROP SINK "+name)); err != nil {
		return "", err
	}
	if !strings.Contains(seen, "SNAPSHOT") || took > maxDrop {
		return "", fmt.Errorf("another watch was answered %q after %v", seen, took)
	}
	return fmt.Sprintf("another watch was answered after %v", took.Round(10*time.Millisecond)), nil
}
