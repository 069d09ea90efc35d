package notify_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/store"
)

// TestAMissedStartIsSaid: to the hooks that want it, of that template or schedule, in words.
func TestAMissedStartIsSaid(t *testing.T) {
	t.Parallel()
	hooks, chat, others := &heard{}, &heard{}, &heard{}
	ear, room, other := httptest.NewServer(hooks), httptest.NewServer(chat), httptest.NewServer(others)
	defer ear.Close()
	defer room.Close()
	defer other.Close()
	n := start(t, runs{}, nil)
	mine := hook("mine", notify.Webhook, ear.URL, "", notify.Missed)
	mine.TemplateID, mine.Tags = "t", map[string]string{notify.ScheduleTag: "nightly"}
	theirs := hook("theirs", notify.Webhook, other.URL, "", notify.Missed)
	theirs.TemplateID = "u"
	if _, err := n.Save(t.Context(), 0, []notify.HookInput{mine, theirs, hook("chat", notify.Slack, room.URL, "",
		notify.Missed, notify.Failed), hook("not", notify.Webhook, other.URL, "", notify.Failed)},
		store.User{Name: "ada"}); err != nil {
		t.Fatal(err)
	}
	due := engine.At(time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC))
	n.ScheduleMissed(engine.Schedule{ScheduleID: "s", Name: "nightly", TemplateID: "t", TemplateName: "Orders"},
		engine.ScheduledStart{ScheduleID: "s", DueAt: due, Outcome: engine.StartMissed, Missed: 3, Reason: "No <server>."})
	hooks.await(t, 1)
	chat.await(t, 1)
	var v notify.Notice
	if err := json.Unmarshal(hooks.bodies[0], &v); err != nil || v.Event != notify.Missed || v.Schedule == nil ||
		v.Schedule.Name != "nightly" || !v.Schedule.DueAt.Equal(due.Time) || v.Schedule.Missed != 3 ||
		v.Reason != "No <server>." || v.TemplateName != "Orders" || v.URL != "https://bench.example/schedules" {
		t.Errorf("%s, %v", hooks.bodies[0], err)
	}
	var said struct{ Text string }
	if err := json.Unmarshal(chat.bodies[0], &said); err != nil || !strings.HasPrefix(said.Text,
		"Schedule nightly did not start a run: No &lt;server&gt;. <https://") {
		t.Errorf("%q, %v", said.Text, err)
	}
	if len(others.bodies) > 0 {
		t.Errorf("others are told %s", others.bodies)
	}
}
