package notify_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestAFailedRunSaysWhy: and not a rate of 0 where nothing was measured.
func TestAFailedRunSaysWhy(t *testing.T) {
	t.Parallel()
	row := ended("r", engine.StatusFailed, new(bool), nil)
	reason, none, zero := "There is no table <nope>.", engine.VerdictNone, 0.0
	row.CancellationReason, row.Verdict, row.QPS, row.ErrorRate = &reason, &none, &zero, &zero
	hooks, chat := &heard{}, &heard{}
	ear, room := httptest.NewServer(hooks), httptest.NewServer(chat)
	defer ear.Close()
	defer room.Close()
	n := start(t, runs{"r": row}, nil)
	if _, err := n.Save(t.Context(), 0, []notify.HookInput{hook("all", notify.Webhook, ear.URL, "", notify.Failed),
		hook("chat", notify.Slack, room.URL, "", notify.Failed)}, store.User{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	n.Ended("r")
	hooks.await(t, 1)
	chat.await(t, 1)
	var said struct{ Text string }
	var told notify.Notice
	if err := errors.Join(json.Unmarshal(chat.bodies[0], &said), json.Unmarshal(hooks.bodies[0], &told)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.Text, " failed: There is no table &lt;nope&gt;. <https://") {
		t.Errorf("it says %q", said.Text)
	}
	if told.Reason != reason || told.QPS != nil || told.ErrorRate != nil || told.Validity != "" {
		t.Errorf("a webhook is told %s", hooks.bodies[0])
	}
}

// TestAMessageObeysNoName: what users call their runs neither moves a terminal's cursor, nor turns the text around it,
// nor calls people, nor links somewhere; and a webhook has it as it is.
func TestAMessageObeysNoName(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"channel": "<!channel> <!here|x> <@U1> <#C1>", "at": "@channel, @HERE and ada@example.com",
		"link": "<http://x|click> [click](http://x)", "and": "a & b &lt;",
		"escape": "\x1b]8;;http://x\x07a\x1b[2J\u009b31m", "turned": "\u202egnp.exe\u2066",
		"lines": "one\r\ntwo\u2028three", "nothing": "\x00\u200b", "long": strings.Repeat("é", 10_000),
	}
	want := map[string]string{
		"channel": "&lt;!channel&gt; &lt;!here|x&gt; &lt;@U1&gt; &lt;#C1&gt;",
		"at":      "@ channel, @ HERE and ada@example.com", "link": "&lt;http://x|click&gt; [click] (http://x)",
		"and": "a &amp; b &amp;lt;", "escape": "]8;;http://xa[2J31m", "turned": "gnp.exe", "lines": "one  two three",
		"nothing": "", "long": strings.Repeat("é", 299) + "…",
	}
	all := runs{}
	for id, name := range names {
		row := ended(id, engine.StatusFailed, nil, nil)
		row.RunName = name
		all[id] = row
	}
	hooks, chat := &heard{}, &heard{}
	ear, room := httptest.NewServer(hooks), httptest.NewServer(chat)
	defer ear.Close()
	defer room.Close()
	n := start(t, all, nil)
	if _, err := n.Save(t.Context(), 0, []notify.HookInput{hook("all", notify.Webhook, ear.URL, "", notify.Failed),
		hook("chat", notify.Slack, room.URL, "", notify.Failed)}, store.User{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	for id := range names {
		n.Ended(id)
	}
	hooks.await(t, len(names))
	chat.await(t, len(names))
	said := map[string]string{}
	for _, body := range chat.bodies {
		var v struct{ Text string }
		if err := json.Unmarshal(body, &v); err != nil {
			t.Fatal(err)
		}
		odd := func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
		if i := strings.IndexFunc(v.Text, odd); i >= 0 {
			t.Errorf("a message has %q", v.Text[i:])
		}
		text, id, _ := strings.Cut(v.Text, " <https://bench.example/runs/")
		said[strings.TrimSuffix(id, ">")] = strings.TrimSuffix(strings.TrimPrefix(text, "Run "), " failed.")
	}
	for id := range names {
		if said[id] != want[id] {
			t.Errorf("%s: %q, want %q", id, said[id], want[id])
		}
	}
	for _, body := range hooks.bodies {
		var v notify.Notice
		if err := json.Unmarshal(body, &v); err != nil || v.RunName != names[v.RunID] {
			t.Errorf("%.300s, %v", body, err)
		}
	}
}
