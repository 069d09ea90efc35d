package postgres_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

func refused(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}

// ended makes a run that ended so many hours after the year began, with two parts of executions and one of enrichment.
func ended(t testing.TB, s *postgres.Store, hours int, r engine.Run) {
	t.Helper()
	ctx := t.Context()
	r.ResultID, r.RunName = r.RunID, "run "+r.RunID
	must(t, s.CreateRun(ctx, r))
	for _, to := range []engine.Status{engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted} {
		phase := engine.PhaseMeasurement
		change := store.Transition{RunID: r.RunID, To: to, Phase: &phase}
		if to.Terminal() {
			phase = engine.PhaseNone
			change.EndTime = time.Date(2026, 1, 1, hours, 0, 0, 0, time.UTC)
		}
		_, err := s.Transition(ctx, change)
		must(t, err)
	}
	for _, p := range []engine.Artifact{{Kind: "executions", Name: "executions-1.parquet", SizeBytes: 100},
		{Kind: "binds", Name: "binds-2.parquet", SizeBytes: 50},
		{Kind: "enrichment", Name: "enrichment-1.parquet", SizeBytes: 7}} {
		p.RunID, p.ResultID, p.SHA256 = r.RunID, r.RunID, "ab"
		must(t, s.SaveArtifact(ctx, 0, p))
	}
}

// Retention holds a store to this: what is over is listed with what keeps it, nothing that is kept goes, and the files
// of what went are remembered until they are gone.
func Retention(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	template, err := s.CreateTemplate(ctx, store.Template{Name: "t", Config: engine.Scenario{Name: "t"}})
	must(t, err)
	_, err = s.CreateTemplate(ctx, store.Template{Name: "again", Config: engine.Scenario{Name: "again",
		Workload: engine.Workload{Feed: &engine.Feed{Run: "replayed"}}}})
	must(t, err)
	must(t, s.CreateMatrix(ctx, engine.MatrixRun{MatrixID: "m1", Name: "m", Status: engine.StatusPrepared}))
	matrix := engine.MatrixMember{MatrixID: "m1"}
	for i, r := range []engine.Run{{RunID: "plain"}, {RunID: "baseline", TemplateID: template.TemplateID},
		{RunID: "note"}, {RunID: "share"}, {RunID: "replayed"}, {RunID: "matrix", MatrixMember: matrix},
		{RunID: "tag", Scenario: engine.Scenario{Tags: map[string]string{"release": "1"}}}, {RunID: "expired"}} {
		ended(t, s, i, r)
	}
	must(t, s.CreateRun(ctx, engine.Run{RunID: "waits", ResultID: "waits"}))
	ended(t, s, 20, engine.Run{RunID: "enriching"})
	must(t, s.SaveResult(ctx, engine.RunResult{ResultID: "enriching", RunID: "enriching",
		EnrichmentStatus: engine.EnrichmentRunning, Enrichment: &engine.Enrichment{Status: engine.EnrichmentRunning}}))
	_, err = s.SetBaseline(ctx, store.Baseline{TemplateID: template.TemplateID, RunID: "baseline"})
	must(t, err)
	_, err = s.SaveRunNote(ctx, store.RunNote{RunID: "note", Text: "see the spike"})
	must(t, err)
	for id, until := range map[string]time.Duration{"share": time.Hour, "expired": -time.Hour} {
		_, err = s.CreateShare(ctx, store.Share{RunID: id, ExpiresAt: engine.At(time.Now().Add(until))},
			[32]byte{byte(until >> 40)})
		must(t, err)
	}
	list := func(tags ...string) map[string]store.EndedRun {
		t.Helper()
		all, now, err := s.EndedRuns(ctx, tags)
		must(t, err)
		if off := time.Since(now); off < -time.Hour || off > time.Hour {
			t.Errorf("the store's clock is %v off", off)
		}
		byID := map[string]store.EndedRun{}
		for i, e := range all {
			if byID[e.RunID] = e; i > 0 && e.EndedAt.Before(all[i-1].EndedAt.Time) {
				t.Errorf("%s is not in the order of ends", e.RunID)
			}
		}
		return byID
	}
	got := list("release")
	for id, pin := range map[string]store.Pin{"plain": "", "expired": "", "baseline": store.PinBaseline,
		"note": store.PinNote, "share": store.PinShare, "replayed": store.PinReplay, "matrix": store.PinMatrix,
		"tag": store.PinTag} {
		e, ok := got[id]
		if !ok || e.Pin != pin || e.Parts != 2 || e.Bytes != 150 || e.RunName != "run "+id {
			t.Errorf("%s is listed (%t) as %+v, want pin %q", id, ok, e, pin)
		}
		if pin != "" {
			for _, whole := range []bool{false, true} {
				refused(t, s.Expire(ctx, store.Expiry{RunID: id, Whole: whole, KeepTags: []string{"release"}}),
					store.ErrConflict)
			}
		}
	}
	if len(got) != 8 {
		t.Errorf("%d runs are listed: %v", len(got), got)
	}
	any := list(store.AnyTag)
	if list("other")["tag"].Pin != "" || any["tag"].Pin != store.PinTag || any["plain"].Pin != "" {
		t.Error("tags do not keep what they should")
	}
	for id, want := range map[string]error{"none": store.ErrNotFound, "waits": store.ErrConflict,
		"enriching": store.ErrConflict} {
		refused(t, s.Expire(ctx, store.Expiry{RunID: id, Whole: true}), want)
	}
	expire(t, s, list)
}

// expire lets the executions of one run go, and then two runs.
func expire(t *testing.T, s *postgres.Store, list func(...string) map[string]store.EndedRun) {
	ctx := t.Context()
	line := store.AuditEntry{UserName: "retention", Action: "run.delete_executions", Object: "plain"}
	// Who asks may believe that it is another year: what is old enough is the store's to say.
	const century = 100 * 365 * 24 * time.Hour
	for _, whole := range []bool{false, true} {
		err := s.Expire(ctx, store.Expiry{RunID: "plain", Whole: whole, OlderThan: century, Line: line})
		refused(t, err, store.ErrConflict)
	}
	must(t, s.Expire(ctx, store.Expiry{RunID: "plain", By: "retention", OlderThan: time.Minute, Line: line}))
	refused(t, s.Expire(ctx, store.Expiry{RunID: "plain", By: "retention", Line: line}), store.ErrConflict)
	lines, err := s.ListAudit(ctx, store.AuditFilter{Action: "run"})
	must(t, err)
	if len(lines) != 1 || lines[0].Action != line.Action || lines[0].Object != "plain" ||
		lines[0].Outcome != store.OutcomeDone {
		t.Errorf("the audit log has %+v", lines)
	}
	run, err := s.Run(ctx, "plain")
	must(t, err)
	parts, err := s.Artifacts(ctx, "plain")
	must(t, err)
	if since := time.Since(run.ExecutionsDeletedAt.Time); since > time.Hour || since < -time.Hour ||
		run.ExecutionsDeletedBy != "retention" || len(parts) != 1 || parts[0].Kind != "enrichment" {
		t.Errorf("without its executions: deleted at %v by %q, parts %+v", run.ExecutionsDeletedAt, run.ExecutionsDeletedBy,
			parts)
	}
	if e := list()["plain"]; e.Parts != 0 || e.Bytes != 0 {
		t.Errorf("it is listed as %+v", e)
	}
	must(t, s.Expire(ctx, store.Expiry{RunID: "expired", Whole: true}))
	_, err = s.Run(ctx, "expired")
	refused(t, err, store.ErrNotFound)
	left := func(want ...store.PendingDeletion) {
		t.Helper()
		some, err := s.PendingDeletions(ctx, "", 10)
		must(t, err)
		if len(some) != len(want) {
			t.Fatalf("left over: %v, want %v", some, want)
		}
		for i := range want {
			if some[i].RunID != want[i].RunID || some[i].Whole != want[i].Whole || some[i].Bytes != 150 {
				t.Errorf("left over: %v, want %v", some, want)
			}
		}
	}
	left(store.PendingDeletion{RunID: "plain"}, store.PendingDeletion{RunID: "expired", Whole: true})
	if some, err := s.PendingDeletions(ctx, "", 1); err != nil || len(some) != 1 {
		t.Errorf("one leftover: %v, %v", some, err)
	}
	// The run itself goes before its files with executions are gone: who removes those may not take it for all.
	must(t, s.Expire(ctx, store.Expiry{RunID: "plain", Whole: true}))
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "plain"}))
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "expired", Whole: true}))
	left(store.PendingDeletion{RunID: "plain", Whole: true})
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "plain", Whole: true}))
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "plain", Whole: true}))
	left()
	ended(t, s, 30, engine.Run{RunID: "late"})
	must(t, s.Expire(ctx, store.Expiry{RunID: "late"}))
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "late"}))
	part := engine.Artifact{RunID: "late", ResultID: "late", Kind: "executions", Name: "executions-9.parquet",
		SHA256: "ab"}
	refused(t, s.SaveArtifact(ctx, 0, part), store.ErrExecutionsDeleted)
	part.Kind, part.Name = "binds", "binds-9.parquet"
	refused(t, s.SaveArtifact(ctx, 0, part), store.ErrExecutionsDeleted)
	part.Kind, part.Name = "enrichment", "enrichment-9.parquet"
	must(t, s.SaveArtifact(ctx, 0, part))
	if some, err := s.PendingDeletions(
		ctx,
		"",
		9,
	); err != nil || len(some) != 1 || some[0].RunID != "late" ||
		some[0].Whole {
		t.Errorf("a part that came too late: %v, %v", some, err)
	}
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "late"}))
	places(t, s)
}

// places: what is deleted is to be removed wherever servers keep files, and each speaks for its own.
func places(t *testing.T, s *postgres.Store) {
	ctx := t.Context()
	must(t, s.RegisterLocation(ctx, store.FileLocation{ID: "a", Label: "/a"}))
	must(t, s.RegisterLocation(ctx, store.FileLocation{ID: "b"}))
	must(t, s.RegisterLocation(ctx, store.FileLocation{ID: "b", Label: "/b"}))
	for i, id := range []string{"one", "two"} {
		ended(t, s, 40+i, engine.Run{RunID: id})
		must(t, s.DeleteRun(ctx, id))
	}
	refused(t, s.DeleteRun(ctx, "none"), store.ErrNotFound)
	here := func(place string, want ...string) {
		t.Helper()
		some, err := s.PendingDeletions(ctx, place, 10)
		must(t, err)
		var got []string
		for _, l := range some {
			got = append(got, l.RunID+l.Part)
			if l.Location != place || !l.Whole && l.Part == "" {
				t.Errorf("left over in %s: %+v", place, l)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("left over in %s: %v, want %v", place, got, want)
		}
	}
	here("a", "one", "two")
	must(t, s.DeletionFailed(ctx, store.PendingDeletion{RunID: "one", Location: "a", Whole: true}, "no right"))
	here("a", "two", "one") // what was tried longest ago comes first
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "two", Location: "a", Whole: true}))
	must(t, s.QueueDeletion(ctx, store.PendingDeletion{RunID: "one", Location: "b", Part: ".x"}))
	here("a", "one")
	here("b", "one", "two", "one.x")
	must(t, s.DeletionDone(ctx, store.PendingDeletion{RunID: "one", Location: "b", Part: ".x"}))
	here("b", "one", "two")
	list, err := s.DeletionBacklogs(ctx)
	must(t, err)
	if len(list) != 2 || list[0].Label != "/a" || list[0].Runs != 1 || list[0].Problem != "no right" ||
		list[0].TriedAt.IsZero() || list[1].Label != "/b" || list[1].Runs != 2 || list[1].Problem != "" ||
		!list[1].TriedAt.IsZero() || list[1].SeenAt.IsZero() || list[1].Since.IsZero() {
		t.Errorf("by place: %+v", list)
	}
}
