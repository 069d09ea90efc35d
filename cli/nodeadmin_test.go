package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	clusternodes "github.com/loadstone-db/loadstone/engine/cluster/nodes"
)

// fakeServer answers as one does; each look at its nodes lets work end.
type fakeServer struct {
	nodes []clusternodes.NodeInfo
	asked []string
	// idleAfter is after how many looks the nodes carry nothing any more, 0 for never.
	idleAfter, polls int
	unreachable      map[int]bool
}

func (s *fakeServer) do(_ context.Context, method, path string, _, out any) error {
	if method == http.MethodGet {
		if s.polls++; s.unreachable[s.polls] {
			return &engine.Error{Code: engine.CodeUnavailable, Message: "away"}
		}
		if s.polls == s.idleAfter {
			for i := range s.nodes {
				s.nodes[i].Workers = nil
			}
		}
		return through(NodeList{Nodes: s.nodes}, out)
	}
	s.asked = append(s.asked, path)
	id, verb, _ := strings.Cut(strings.TrimPrefix(path, nodesPath+"/"), "/")
	if id, _ = url.PathUnescape(id); id == "" {
		return errors.New("no node is named")
	}
	for i, n := range s.nodes {
		if n.NodeID == id {
			s.nodes[i].AcceptingWork = verb == "resume" && n.State == clusternodes.NodeActive
			return through(s.nodes[i], out)
		}
	}
	return errors.New("no such node")
}

func through(in, out any) error {
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

func ms(v float64) *float64 { return &v }

func fleet() []clusternodes.NodeInfo {
	return []clusternodes.NodeInfo{
		{
			NodeID:        "local",
			Local:         true,
			State:         clusternodes.NodeActive,
			AcceptingWork: true,
			Capacity:      100,
			Used:          3,
			Version:       "v1",
		},
		{
			NodeID:    "b",
			Address:   "10.0.0.8:9090",
			State:     clusternodes.NodeUnreachable,
			OutReason: "no\x1b[31m answer",
			Capacity:  0,
		},
		{NodeID: "a", Address: "10.0.0.7:9090", State: clusternodes.NodeActive, AcceptingWork: true, RTTMs: ms(0.25),
			ClockOffsetMs: ms(-3), ClockErrorMs: ms(0.5), Workers: []clusternodes.NodeRunWorker{{RunID: "r1", WorkerID: "1"},
				{RunID: "r1", WorkerID: "2"}, {RunID: "r2", WorkerID: "1"}}},
		{Address: "10.0.0.9:9090", State: clusternodes.NodeConnecting, OutReason: "nobody there"},
	}
}

// TestAClockIsNoMoreBehindThanItSays: what rounds to nothing has no minus.
func TestAClockIsNoMoreBehindThanItSays(t *testing.T) {
	for offset, want := range map[float64]string{-0.04: "+0.0 ms", 0: "+0.0 ms", 0.04: "+0.0 ms", -0.06: "-0.1 ms",
		2.5: "+2.5 ms"} {
		if got := formatClockOffset(clusternodes.NodeInfo{ClockOffsetMs: &offset}); got != want {
			t.Errorf("%v: %q, want %q", offset, got, want)
		}
	}
}

func env(ctx context.Context) (*terminal.Env, *bytes.Buffer, *bytes.Buffer) {
	var out, err bytes.Buffer
	return &terminal.Env{Ctx: ctx, Stdout: &out, Stderr: &err}, &out, &err
}

func TestNodesAreListedForAPerson(t *testing.T) {
	var out bytes.Buffer
	if err := (NodeList{Nodes: fleet()}).Table(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"NODE ADDRESS STATE RUNS CONNECTIONS VERSION RTT CLOCK",
		"local (in the server) ACTIVE 0 3 of 100 v1 – –",
		"b 10.0.0.8:9090 UNREACHABLE 0 0, no limit – – –",
		"a 10.0.0.7:9090 ACTIVE 2 0, no limit – 0.250 ms -3.0 ±0.5 ms",
		"– 10.0.0.9:9090 CONNECTING 0 – – – –",
		"b takes no new work: no[31m answer",
		"10.0.0.9:9090 takes no new work: nobody there",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTextsOfNodesAreNotObeyed: neither by the terminal nor by the table, whatever a node calls itself and its version.
func TestTextsOfNodesAreNotObeyed(t *testing.T) {
	bad := "a\x1b]52;c;aGk=\x07\u009b31m\x7f\u202egnp\u200b\r\nb\tc" + strings.Repeat("x", 10_000)
	s := &fakeServer{
		nodes: []clusternodes.NodeInfo{
			{NodeID: bad, Address: bad, Version: bad, State: clusternodes.NodeActive, OutReason: bad},
		},
	}
	for _, asJSON := range []bool{false, true} {
		var out bytes.Buffer
		if err := NodeAPI(s.do).List(t.Context(), &out, asJSON); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexFunc(out.String(), func(r rune) bool { return r != '\n' && textsafe.IsControl(r) }); i >= 0 {
			t.Errorf("as JSON %v: it has %+q", asJSON, out.String()[max(0, i-20):i+4])
		}
		for n, line := range strings.Split(out.String(), "\n") {
			if !asJSON && n < 2 && len(line) > 2000 {
				t.Errorf("line %d of the table has %d bytes", n+1, len(line))
			}
		}
	}
}

func TestANodeIsNamedByItsNameOrItsAddress(t *testing.T) {
	for called, want := range map[string]string{"a": "a", "10.0.0.7:9090": "a", "local": "local", "10.0.0.9:9090": "",
		"": "", "c": ""} {
		n, err := NodeList{Nodes: fleet()}.find(called)
		if n.NodeID != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", called, n.NodeID, err)
		}
		var e *engine.Error
		if err != nil && (!errors.As(err, &e) || e.Code != engine.CodeNotFound || !strings.Contains(e.Hint, "local, b, a")) {
			t.Errorf("%q: %v names no cure", called, err)
		}
	}
}

func TestADrainWaitsUntilTheNodeCarriesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{nodes: fleet(), idleAfter: 6, unreachable: map[int]bool{4: true}}
		e, out, _ := env(t.Context())
		begin := time.Now()
		if err := NodeAPI(s.do).Drain(e, "10.0.0.7:9090", time.Minute); err != nil {
			t.Fatal(err)
		}
		// The first look is for the name, the second says who takes work; the wait begins with the third.
		if took := time.Since(begin); took != 3*drainPollInterval {
			t.Errorf("it waited %s", took)
		}
		if strings.Join(s.asked, " ") != nodesPath+"/a/drain" || !strings.Contains(out.String(),
			"it carries 3 run workers of 2 runs") || !strings.Contains(out.String(), "a carries nothing any more") {
			t.Errorf("%v: %s", s.asked, out)
		}
	})
}

func TestADrainThatTakesTooLongSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeServer{nodes: fleet()}
		e, _, _ := env(t.Context())
		begin := time.Now()
		err := NodeAPI(s.do).Drain(e, "a", 10*time.Second)
		var exit *terminal.ExitError
		if !errors.As(err, &exit) || exit.Code != terminal.ExitFailed || time.Since(begin) != 10*time.Second ||
			!strings.Contains(err.Error(), "still carries 3 run workers of 2 runs") {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// TestADrainShowsNamesAsTheyMayBeShown: an older server hands on what a node calls itself.
func TestADrainShowsNamesAsTheyMayBeShown(t *testing.T) {
	for ends, limit := range map[int]time.Duration{3: time.Minute, 0: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeServer{nodes: fleet()[2:3], idleAfter: ends}
			s.nodes[0].NodeID = "a\x1b[2J\u202e\u2028b"
			e, out, message := env(t.Context())
			err := NodeAPI(s.do).Drain(e, s.nodes[0].NodeID, limit)
			text := out.String() + message.String()
			if err != nil {
				text += err.Error()
			}
			if (err == nil) != (ends > 0) || strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), textsafe.IsControl) ||
				!strings.Contains(text, "a[2Jb") {
				t.Errorf("%q", text)
			}
		})
	}
}

func TestADrainOfTheLastNodeIsSaid(t *testing.T) {
	s := &fakeServer{nodes: fleet()[:2]}
	e, _, message := env(t.Context())
	if err := NodeAPI(
		s.do,
	).Drain(
		e,
		"local",
		0,
	); err != nil ||
		!strings.Contains(message.String(), "No other node takes work") {
		t.Errorf("%v: %s", err, message)
	}
}

func TestAResumedNodeThatTakesNoWorkYetSaysWhy(t *testing.T) {
	s := &fakeServer{nodes: fleet()}
	e, out, _ := env(t.Context())
	if err := NodeAPI(
		s.do,
	).Resume(
		e,
		"b",
	); err != nil ||
		!strings.Contains(out.String(), "It takes none yet: no[31m answer") {
		t.Errorf("%v: %s", err, out)
	}
	out.Reset()
	if err := NodeAPI(s.do).Resume(e, "a"); err != nil || out.String() != "a takes work again.\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAResumeWaitsForTheNodesWord: its last status still says that it drains.
func TestAResumeWaitsForTheNodesWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := fleet()[2:3]
		nodes[0].State, nodes[0].AcceptingWork, nodes[0].OutReason = clusternodes.NodeDraining, false, "its process is ending"
		s := &fakeServer{nodes: nodes}
		e, out, _ := env(t.Context())
		ask := func(ctx context.Context, method, path string, in, answer any) error {
			if s.polls == 3 {
				nodes[0].State, nodes[0].AcceptingWork = clusternodes.NodeActive, true
			}
			return s.do(ctx, method, path, in, answer)
		}
		if err := NodeAPI(ask).Resume(e, "a"); err != nil || out.String() != "a takes work again.\n" {
			t.Errorf("%v: %s", err, out)
		}
		nodes[0].State, nodes[0].AcceptingWork = clusternodes.NodeDraining, false
		out.Reset()
		begin := time.Now()
		err := NodeAPI(s.do).Resume(e, "a")
		if err != nil || !strings.Contains(out.String(), "takes none yet: its process is ending.") ||
			time.Since(begin) != resumeTimeout {
			t.Errorf("after %s: %v: %s", time.Since(begin), err, out)
		}
	})
}

// TestTokensAreMadeListedAndEnded: the secret is alone on the standard output, and nowhere else.
func TestTokensAreMadeListedAndEnded(t *testing.T) {
	var requested []string
	ask := func(_ context.Context, method, path string, in, out any) error {
		text, _ := json.Marshal(in)
		requested = append(requested, method+" "+path+" "+string(text))
		at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		token := map[string]any{"token_id": "ab12", "uses": 3, "used": 1, "created_by": "ada\x1b[31m", "created_at": at,
			"expires_at": at.Add(time.Hour), "secret": "lsn_secret"}
		switch method {
		case http.MethodPost:
			return through(token, out)
		case http.MethodGet:
			return through(map[string]any{"tokens": []any{token}}, out)
		}
		return nil
	}
	e, out, message := env(t.Context())
	if err := NodeAPI(ask).Token(e, 3, time.Hour); err != nil || out.String() != "lsn_secret\n" ||
		!strings.Contains(message.String(), "lets 3 nodes join until 2026-11-22 13:00 UTC") ||
		!strings.Contains(message.String(), "token end ab12") || strings.Contains(message.String(), "lsn_") {
		t.Errorf("%v: %q, %q", err, out, message)
	}
	out.Reset()
	if err := NodeAPI(ask).Tokens(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), " "); got != "TOKEN USED MADE BY MADE AT GOOD UNTIL ab12 1 of 3 "+
		"ada[31m 2026-11-22T12:00:00Z 2026-11-22T13:00:00Z" {
		t.Errorf("%q", got)
	}
	if err := NodeAPI(ask).EndToken(e, "a/b"); err != nil {
		t.Fatal(err)
	}
	want := `POST /api/v1/node-tokens {"uses":3,"valid_seconds":3600}; GET /api/v1/node-tokens null; ` +
		`DELETE /api/v1/node-tokens/a%2Fb null`
	if got := strings.Join(requested, "; "); got != want {
		t.Errorf("%s", got)
	}
	for _, wrong := range []func() error{func() error { return NodeAPI(ask).Token(e, 0, time.Hour) },
		func() error { return NodeAPI(ask).Token(e, 1, time.Millisecond) }} {
		if err := wrong(); !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%v", err)
		}
	}
}
