package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/api"
)

func TestMarksAreMadeChangedAndDeleted(t *testing.T) {
	t.Parallel()
	b := start(t)
	prepared := b.createRun("not yet")
	path := func(id string) string { return "/api/v1/runs/" + id + "/marks" }
	b.do("POST", path(prepared.RunID), map[string]any{"text": "x"}).problem(t, 409, engine.CodeConflict)
	id := b.liveRun()
	for name, body := range map[string]any{"text": map[string]any{"text": ""}, "at": map[string]any{"text": "x",
		"at": "2020-01-01T00:00:00Z"}, "txt": map[string]any{"txt": "x"}, "characters": map[string]any{
		"text": strings.Repeat("x", 201)}} {
		if a := b.do("POST", path(id), body); a.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	made := b.do("POST", path(id), map[string]any{"text": " index <b>created</b> "})
	if made.StatusCode != http.StatusCreated {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	list := read[api.MarkList](t, b.do("GET", path(id), nil))
	if len(list.Marks) != 1 || list.Marks[0].Text != "index <b>created</b>" ||
		time.Since(list.Marks[0].At.Time) > time.Minute {
		t.Fatalf("%+v", list)
	}
	one := path(id) + "/" + list.Marks[0].MarkID
	b.do("PUT", one, map[string]any{"text": "no moment"}).problem(t, 422, engine.CodeInvalid)
	at := time.Now().UTC().Format(time.RFC3339Nano)
	if a := b.do("PUT", one, map[string]any{"text": "vacuum", "at": at}); a.StatusCode != http.StatusOK {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	was := map[string]any{"text": "vacuum", "at": read[api.MarkList](t, b.do("GET", path(id), nil)).Marks[0].At}
	b.do("PUT", one, map[string]any{"text": "vacuum full", "at": at, "was": was}).want(t, 200)
	p := b.do("PUT", one, map[string]any{"text": "analyze", "at": at, "was": was}).problem(t, 409, engine.CodeConflict)
	if p.Hint == "" || len(p.Errors) != 1 || p.Errors[0].Field != "was" {
		t.Errorf("who came second is told %+v", p)
	}
	if found := b.lines("action=mark.change&outcome=done"); len(found) != 2 || !strings.HasPrefix(found[0].Detail,
		`"vacuum" at 2`) || !strings.Contains(found[0].Detail, `Z → "vacuum full" at 2`) {
		t.Errorf("the log has %+v", found)
	}
	_, viewer := b.join("vera", store.RoleViewer)
	if a := b.do("DELETE", one, nil, viewer...); a.StatusCode != http.StatusForbidden {
		t.Errorf("a viewer deletes: %d", a.StatusCode)
	}
	if got := read[api.MarkList](t, b.do("GET", path(id), nil, viewer...)); got.Marks[0].Text != "vacuum full" {
		t.Errorf("%+v", got)
	}
	requested := func(text string, at engine.Time) string {
		return one + "?" + url.Values{"was_text": {text}, "was_at": {at.Format(engine.TimeLayout)}}.Encode()
	}
	now := read[api.MarkList](t, b.do("GET", path(id), nil)).Marks[0]
	for name, address := range map[string]string{"another text": requested("vacuum", now.At),
		"another moment": requested(now.Text, engine.At(now.At.Add(time.Second)))} {
		if p := b.do("DELETE", address, nil).problem(t, 409, engine.CodeConflict); p.Hint == "" {
			t.Errorf("%s: %+v", name, p)
		}
	}
	for _, half := range []string{"?was_text=x", "?was_at=2026-11-01T12:00:00Z"} {
		b.do("DELETE", one+half, nil).problem(t, 422, engine.CodeInvalid)
	}
	b.do("DELETE", path(prepared.RunID)+"/"+list.Marks[0].MarkID, nil).problem(t, 404, engine.CodeNotFound)
	if a := b.do("DELETE", requested(now.Text, now.At), nil); a.StatusCode != http.StatusNoContent {
		t.Errorf("%d", a.StatusCode)
	}
	b.do("DELETE", one, nil).problem(t, 404, engine.CodeNotFound)
	if found := b.lines("action=mark.delete&outcome=done"); len(found) != 1 || !strings.HasPrefix(found[0].Detail,
		`"vacuum full" at 2`) {
		t.Errorf("the log has %+v", found)
	}
	b.do("GET", path("nobody"), nil).problem(t, 404, engine.CodeNotFound)
	b.do("POST", path("nobody"), map[string]any{"text": "x"}).problem(t, 404, engine.CodeNotFound)
}
