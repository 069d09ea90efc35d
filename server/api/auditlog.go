// This part holds the handlers by which admins read who did what: a page of lines by filter, the same as a file,
// and for how long lines are kept.

package api

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/store"
)

const auditTag = "Audit"

// AuditFilter is which lines are read.
type AuditFilter struct {
	User    string    `query:"user" maxLength:"128" doc:"A user's id, or a part of the name in any case."`
	Action  string    `query:"action" maxLength:"100" doc:"run.start, or run for all that begin so."`
	Object  string    `query:"object" maxLength:"200" doc:"A part of what it was done to, or of the detail, in any case."`
	Outcome string    `query:"outcome" enum:"done,refused,failed"`
	Since   time.Time `query:"since" doc:"RFC 3339."`
	Until   time.Time `query:"until" doc:"RFC 3339; lines at this time and later are left out."`
}

func (f AuditFilter) storeFilter() store.AuditFilter {
	return store.AuditFilter{User: f.User, Action: f.Action, Object: f.Object, Outcome: f.Outcome, Since: f.Since,
		Until: f.Until}
}

type auditListInput struct {
	AuditFilter
	Limit  int   `query:"limit" minimum:"1" maximum:"500" default:"50"`
	Before int64 `query:"before" minimum:"0" maximum:"9007199254740991" doc:"next_before of the page before."`
}

type auditExportInput struct {
	AuditFilter
	Format string `query:"format" enum:"csv,json" default:"csv"`
}

// AuditPage is a part of the audit log, the newest first.
type AuditPage struct {
	Entries    []store.AuditEntry `json:"entries" nullable:"false"`
	NextBefore int64              `json:"next_before" doc:"Give it as before to read on; 0 when there is no more."`
}

// AuditRetention says for how long lines are kept.
type AuditRetention struct {
	KeepDays int `json:"keep_days" minimum:"0" maximum:"36500" doc:"0 keeps lines for ever; 30 is the least otherwise."`
}

type auditBody[T any] struct{ Body T }

// AuditRetentionChange says for how long lines shall be kept.
type AuditRetentionChange struct {
	AuditRetention
	Was *int `json:"was,omitempty" minimum:"0" maximum:"36500" doc:"keep_days as it was read; 409 when it is another by now. Without it, whatever is there is replaced."`
}

type auditRetentionInput struct{ Body AuditRetentionChange }

type auditFile struct {
	Type        string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Truncated   string `header:"Loadstone-Truncated" doc:"true when there are more lines than an export has: 100 000. Narrow the time."`
	Body        []byte
}

// RegisterAuditLog adds the routes.
func RegisterAuditLog(a *API) {
	list := NewOperation(http.MethodGet, "/api/audit", "list-audit", auditTag, "Read who did what, the newest first",
		http.StatusForbidden)
	Handle(a, list, func(ctx context.Context, in *auditListInput) (*auditBody[AuditPage], error) {
		if err := a.Admin(ctx, "read the audit log"); err != nil {
			return nil, err
		}
		f := in.storeFilter()
		f.Before, f.Limit = in.Before, in.Limit+1
		entries, err := a.Store.ListAudit(ctx, f)
		if err != nil {
			return nil, err
		}
		p := AuditPage{Entries: append([]store.AuditEntry{}, entries...)}
		if len(p.Entries) > in.Limit {
			p.Entries = p.Entries[:in.Limit]
			p.NextBefore = p.Entries[in.Limit-1].AuditID
		}
		return &auditBody[AuditPage]{p}, nil
	})
	export := NewOperation(http.MethodGet, "/api/audit/export", "export-audit", auditTag, "Read the audit log as a file",
		http.StatusForbidden)
	export.Responses = map[string]*huma.Response{"200": {Description: "A file", Content: map[string]*huma.MediaType{
		"text/csv":         {Schema: &huma.Schema{Type: huma.TypeString}},
		"application/json": {Schema: &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeObject}}}}}}
	Handle(a, export, func(ctx context.Context, in *auditExportInput) (*auditFile, error) {
		if err := a.Admin(ctx, "export the audit log"); err != nil {
			return nil, err
		}
		entries, more, err := collectAuditLines(ctx, a.Store, in.storeFilter())
		if err != nil {
			return nil, err
		}
		name := "loadstone-audit-" + time.Now().UTC().Format("20060102-150405")
		out := &auditFile{Type: "application/json", Disposition: `attachment; filename="` + name + `.json"`,
			Truncated: strconv.FormatBool(more)}
		if in.Format == "json" {
			out.Body, err = json.Marshal(entries)
			out.Body = textsafe.EscapeJSON(out.Body)
			return out, err
		}
		out.Type, out.Disposition = "text/csv; charset=utf-8", `attachment; filename="`+name+`.csv"`
		out.Body, err = WriteAuditCSV(entries)
		return out, err
	})
	read := NewOperation(http.MethodGet, "/api/audit/retention", "get-audit-retention", auditTag,
		"Read for how long the audit log is kept", http.StatusForbidden)
	Handle(a, read, func(ctx context.Context, _ *struct{}) (*auditBody[AuditRetention], error) {
		if err := a.Admin(ctx, "see how long the audit log is kept"); err != nil {
			return nil, err
		}
		days, err := a.Store.AuditDays(ctx)
		return &auditBody[AuditRetention]{AuditRetention{days}}, err
	})
	keep := NewOperation(
		http.MethodPut,
		"/api/audit/retention",
		"keep-audit",
		auditTag,
		"Say for how long the audit log is kept",
		http.StatusForbidden,
		http.StatusConflict,
	)
	Handle(a, keep, func(ctx context.Context, in *auditRetentionInput) (*auditBody[AuditRetention], error) {
		if err := a.Admin(ctx, "say how long the audit log is kept"); err != nil {
			return nil, err
		}
		before, err := a.Store.SetAuditRetention(ctx, in.Body.KeepDays, in.Body.Was)
		if err != nil {
			return nil, err
		}
		a.Audit(ctx, "audit.keep", "", keepDaysText(before)+" → "+keepDaysText(in.Body.KeepDays))
		return &auditBody[AuditRetention]{in.Body.AuditRetention}, nil
	})
}

// keepDaysText is for how long lines are kept, as the audit log has it.
func keepDaysText(days int) string {
	if days == 0 {
		return "for ever"
	}
	return fmt.Sprintf("%d days", days)
}

// The sizes of an export.
const (
	maxExported    = 100_000
	exportPageSize = 5_000
)

// collectAuditLines are the lines of an export; more tells that there are others.
func collectAuditLines(
	ctx context.Context,
	s store.Audit,
	f store.AuditFilter,
) (entries []store.AuditEntry, more bool, err error) {
	entries = []store.AuditEntry{}
	for len(entries) < maxExported {
		f.Limit = exportPageSize
		some, err := s.ListAudit(ctx, f)
		if err != nil {
			return nil, false, err
		}
		entries = append(entries, some...)
		if len(some) < exportPageSize {
			return entries, false, nil
		}
		f.Before = some[len(some)-1].AuditID
	}
	return entries, true, nil
}

// WriteAuditCSV writes lines as a table. Names and objects come from callers: none of them is a formula.
func WriteAuditCSV(entries []store.AuditEntry) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	err := w.Write([]string{"audit_id", "at", "user_name", "user_id", "address", "token_name", "token_id", "action",
		"object", "detail", "outcome"})
	for _, e := range entries {
		if err != nil {
			break
		}
		row := []string{strconv.FormatInt(e.AuditID, 10), e.At.UTC().Format(time.RFC3339Nano), e.UserName, e.UserID,
			e.Address, e.TokenName, e.TokenID, e.Action, e.Object, e.Detail, e.Outcome}
		for i := 2; i < len(row); i++ {
			row[i] = textsafe.CSVField(row[i])
		}
		err = w.Write(row)
	}
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("writing the audit log as CSV: %w", err)
	}
	return b.Bytes(), nil
}

// PruneAuditLog removes old lines until ctx ends, as often as every.
func PruneAuditLog(ctx context.Context, s store.Audit, every time.Duration, failed func(error)) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		for {
			n, err := s.PruneAudit(ctx, exportPageSize)
			if err != nil && ctx.Err() == nil {
				failed(engine.AsError(err))
			}
			if err != nil || n < exportPageSize {
				break
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
