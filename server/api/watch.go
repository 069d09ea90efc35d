package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/watch"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// registerWatch adds the route of WATCH: server-sent events for as long as the client listens.
func registerWatch(a *API, app *fiber.App, c Coordinator, down httpx.Downloads) {
	o := NewOperation(
		http.MethodGet,
		"/api/v1/streams/watch",
		"watch-streams",
		streamTag,
		"Watch a table of the catalog of streams",
		http.StatusConflict,
		http.StatusUnprocessableEntity,
	)
	o.Description = "Server-sent events: SNAPSHOT with all rows, then CREATE, UPDATE and DROP with one each, in `rows`. " +
		"Beside these an event has its `type` (SNAPSHOT, RESUMED or EVENT), and its `data`: all rows, or the one; of EVENT " +
		"also the `op` and the `key` of the entity. The id of " +
		"an event is the position behind it; with it, as Last-Event-ID or `after`, a watch goes on where it was broken " +
		"off: RESUMED and what is different since, or SNAPSHOT where that is not known any more. A client that reads " +
		"slowly gets what has changed meanwhile as one change."
	text := &huma.Schema{Type: huma.TypeString}
	o.Parameters = []*huma.Param{
		{Name: "sql", In: "query", Required: true, Schema: text,
			Description: "WATCH SELECT … FROM workers, queries, query_fragments, logical_sources, physical_sources or sinks."},
		{Name: "after", In: "query", Schema: text, Description: "The position behind which the watch goes on."},
	}
	o.Responses = map[string]*huma.Response{"200": {Description: "The events, until the client ends.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: text}}}}
	watchers := &userWatches{open: map[string]int{}}
	a.Raw(app, o, func(f *fiber.Ctx) error {
		for key := range f.Queries() {
			if key != "sql" && key != "after" {
				return httpx.Write(f, httpx.Field(key, "is not known here", "sql and after are"))
			}
		}
		view, err := watch.Parse(f.Query("sql"))
		if err != nil {
			return httpx.Write(f, coordinator.StatementError(err))
		}
		// What is read from the request is not valid any more when the handler has returned.
		after := string(append([]byte{}, f.Query("after", f.Get("Last-Event-ID"))...))
		by := a.User(f.UserContext())
		user := by.UserID
		if err := watchers.enter(user); err != nil {
			return httpx.Write(f, err)
		}
		ctx, stop := httpx.WatchDisconnect(down.Life, f.Context().Conn())
		f.Set(fiber.HeaderContentType, "text/event-stream")
		f.Set(fiber.HeaderCacheControl, "no-store")
		f.Set("X-Accel-Buffering", "no")
		ended := func() { stop(); watchers.leave(user) }
		return down.Stream(f, ended, func(life context.Context, w io.Writer) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(life, cancel)()
			err := c.Watch(
				ctx,
				cmp.Or(user, by.Name),
				view,
				after,
				func(events []watch.Event) error { return sendEvents(w, events) },
			)
			if ctx.Err() != nil {
				return nil // the client, or the server, has ended
			}
			p, bad := json.Marshal(httpx.From(coordinator.StatementError(err)))
			if bad != nil {
				return bad
			}
			_, bad = fmt.Fprintf(w, "event: error\ndata: %s\n\n", p)
			return bad
		})
	})
}

// maxUserWatches is how many watches one user may have at a time: all users together have some two hundred.
const maxUserWatches = 20

// userWatches counts the watches of users. It is safe for concurrent use.
type userWatches struct {
	mu   sync.Mutex
	open map[string]int
}

func (w *userWatches) enter(user string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[user] >= maxUserWatches {
		return &engine.Error{Code: engine.CodeConflict, Message: fmt.Sprintf("You have %d watches of the catalog.",
			maxUserWatches), Hint: "end one of them; the bound is fixed"}
	}
	w.open[user]++
	return nil
}

func (w *userWatches) leave(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open[user]--; w.open[user] == 0 {
		delete(w.open, user)
	}
}

// sendEvents writes events; a comment where there is none, so that who has gone is noticed.
func sendEvents(w io.Writer, events []watch.Event) error {
	if len(events) == 0 {
		_, err := io.WriteString(w, ": nothing has changed\n\n")
		return err
	}
	to := bufio.NewWriterSize(w, 64<<10)
	for _, e := range events {
		if err := sendEvent(to, e); err != nil {
			return err
		}
	}
	return to.Flush()
}

// sendEvent writes an event row by row: there may be many of them, and no copy of all is made.
func sendEvent(w *bufio.Writer, e watch.Event) error {
	rows := e.Rows
	e.Rows = []json.RawMessage{}
	around, err := json.Marshal(e)
	if err != nil {
		return err
	}
	begin, is := bytes.CutSuffix(around, []byte("]}"))
	if !is {
		return errors.New("the rows are not the last of an event")
	}
	id := ""
	if e.Position != "" {
		id = "id: " + e.Position + "\n"
	}
	// An error of the writer stays until the last call, which returns it.
	_, _ = fmt.Fprintf(w, "event: %s\n%sdata: %s", e.Kind, id, begin)
	writeRows(w, rows)
	switch {
	case e.Op == watch.Drop: // there is no row any more, and its key says which
		_, err = w.WriteString("]}\n\n")
	case e.Type == watch.OneRow:
		_, _ = w.WriteString(`],"data":`)
		writeRows(w, rows)
		_, err = w.WriteString("}\n\n")
	default:
		_, _ = w.WriteString(`],"data":[`)
		writeRows(w, rows)
		_, err = w.WriteString("]}\n\n")
	}
	return err
}

// writeRows writes rows with commas between them.
func writeRows(w *bufio.Writer, rows []json.RawMessage) {
	for i, row := range rows {
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(row)
	}
}
