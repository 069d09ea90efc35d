package api

import (
	"context"
	"errors"
	"fmt"
	"html"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	// sharedPath is where links lead, for strangers too.
	sharedPath = "/shared/"
	// shareSecretPrefix begins the secrets of links, so that one that leaks is known for what it is.
	shareSecretPrefix = "lsr_"
	defaultDays       = 7
	// unknownLinkRefill and allEvery are how fast an address regains the attempts that it has spent on unknown links, and
	// on all.
	unknownLinkRefill  = 6 * time.Second
	openRefill         = time.Second
	shareAuditInterval = time.Hour
	// reportCacheTTL is how long a report that was opened is kept: who was sent a link opens it when the others do.
	reportCacheTTL  = time.Minute
	reportCacheSize = 8
)

// RedactSharePath is a path as logs may have it: whoever has the secret of a link sees what it shows.
func RedactSharePath(path string) string {
	if strings.HasPrefix(path, sharedPath) {
		return sharedPath + "…"
	}
	return path
}

// shareOpener is what opening links needs.
type shareOpener struct {
	gate *httpx.Gate
	// unknownLinks counts attempts with unknown links, all those with any, by network.
	unknownLinks *auth.GuessLimiter
	opens        *auth.Limiter
	// audited is which links were opened from where in the last hour.
	audited *auth.Limiter

	mu    sync.Mutex
	cache []cachedReport
	// changes counts what was written about runs: a report that was begun before is not kept.
	changes int
}

type cachedReport struct {
	report  Report
	expires time.Time
}

func (h *reportHandlers) registerShares(app *fiber.App) {
	a := h.a
	create := NewOperation(http.MethodPost, "/api/runs/{id}/shares", "create-share", reportTag,
		"Make a link by which anybody sees the run's report", http.StatusNotFound)
	create.Description = "The link shows the report and nothing else, until it expires or is ended."
	create.DefaultStatus = http.StatusCreated
	Handle(a, create, h.createShare)
	Handle(a, NewOperation(http.MethodGet, "/api/v1/shares", "list-shares", reportTag, "List the links to reports"),
		func(ctx context.Context, in *sharesInput) (*reportBody[ShareList], error) {
			list, err := h.store.ListShares(ctx, in.RunID)
			return &reportBody[ShareList]{ShareList{append([]store.Share{}, list...)}}, err
		})
	end := NewOperation(http.MethodDelete, "/api/v1/shares/{id}", "end-share", reportTag, "End a link to a report",
		http.StatusNotFound)
	end.DefaultStatus = http.StatusNoContent
	Handle(a, end, func(ctx context.Context, in *IDInput) (*reportNothing, error) {
		if err := h.store.RevokeShare(ctx, in.ID); err != nil {
			return nil, NotFoundAs(err, "share", in.ID)
		}
		a.Audit(ctx, "share.end", in.ID, "")
		return &reportNothing{}, nil
	})
	page := map[string]*huma.MediaType{fiber.MIMETextHTML: {Schema: &huma.Schema{Type: huma.TypeString}}}
	open := NewOperation(http.MethodGet, sharedPath+"{id}", "open-share", reportTag, "The report that a link leads to")
	open.Security = []map[string][]string{{}}
	open.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Description: "The secret of the link.",
		Schema: &huma.Schema{Type: huma.TypeString}}}
	open.Errors = nil
	open.Responses = map[string]*huma.Response{"200": {Description: "The report.", Content: page}}
	for status, why := range map[int]string{http.StatusNotFound: "There is no such link.",
		http.StatusGone:     "The link has expired, or its run was deleted.",
		http.StatusConflict: "The run has no figures yet.", http.StatusTooManyRequests: "Too many were opened.",
		http.StatusServiceUnavailable: "The store is away."} {
		open.Responses[strconv.Itoa(status)] = &huma.Response{Description: why, Content: page}
	}
	a.Raw(app, open, h.open)
}

func (h *reportHandlers) createShare(ctx context.Context, in *shareInput) (*reportBody[NewShare], error) {
	if err := h.mayShare(ctx, in.ID); err != nil {
		return nil, err
	}
	days := in.Body.ExpiresInDays
	if days == 0 {
		days = defaultDays
	}
	secret, hash := auth.NewSecret(shareSecretPrefix)
	s, err := h.store.CreateShare(
		ctx,
		store.Share{RunID: in.ID, CreatedBy: h.a.Caller(ctx), CreatedByID: h.a.User(ctx).UserID,
			ExpiresAt: engine.At(time.Now().UTC().AddDate(0, 0, days))},
		hash,
	)
	if err != nil {
		return nil, NotFoundAs(err, "run", in.ID)
	}
	h.a.Audit(ctx, "share.create", s.RunID, fmt.Sprintf("%s, for %d days", s.ShareID, days))
	return &reportBody[NewShare]{NewShare{s, h.a.URL() + sharedPath + secret}}, nil
}

// mayShare refuses callers who may not run what the run did, and tokens that may not make others: a link is the secret
// of one who needs none, and must not outlive a token that leaked.
func (h *reportHandlers) mayShare(ctx context.Context, runID string) error {
	id, _ := auth.IdentityOf(ctx)
	if !id.MayGrant() {
		return &engine.Error{Code: engine.CodeForbidden, Message: "This token may not make links to reports.",
			Hint: "Sign in, or use a token with the scope admin."}
	}
	run, err := h.store.Run(ctx, runID)
	if err != nil {
		return NotFoundAs(err, "run", runID)
	}
	return h.a.mayUseRecorded(ctx, run)
}

// open shows a stranger the report that a link leads to. It says no more of a link that leads nowhere than that.
func (h *reportHandlers) open(c *fiber.Ctx) error {
	ctx := c.UserContext()
	address := auth.Network(auth.PeerOf(ctx).IP)
	if wait := max(h.opener.unknownLinks.Wait(ctx, address), h.opener.opens.Wait(address)); wait > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(wait.Seconds()))))
		return writeErrorPage(
			c,
			http.StatusTooManyRequests,
			"Too many links were opened",
			"Wait a moment, then load this page again.",
		)
	}
	h.opener.opens.RecordFailure(address)
	s, err := h.share(ctx, c.Params("id"))
	switch {
	case errors.Is(err, store.ErrNotFound):
		h.opener.unknownLinks.RecordFailure(ctx, address)
		return writeErrorPage(c, http.StatusNotFound, "This link leads nowhere",
			"It was ended, or a part of its address is missing. Ask who sent it for another one.")
	case err != nil:
		return writeErrorPage(
			c,
			http.StatusServiceUnavailable,
			"The report cannot be read now",
			"Load this page again in a moment.",
		)
	case s.RunDeleted:
		return writeErrorPage(c, http.StatusGone, "The run was deleted", "This link showed its report until then.")
	case !s.ExpiresAt.After(time.Now()):
		return writeErrorPage(c, http.StatusGone, "This link has expired",
			"It worked until "+s.ExpiresAt.UTC().Format("2006-01-02 15:04")+" UTC. Ask who sent it for another one.")
	}
	if err := (auth.Authorizer{Store: h.a.Store}).RecheckShare(ctx, s); err != nil {
		switch {
		case errors.Is(err, store.ErrNotFound):
			return writeErrorPage(c, http.StatusGone, "The run was deleted", "This link showed its report until then.")
		case engine.HasCode(err, engine.CodeForbidden):
			return writeErrorPage(c, http.StatusGone, "This link shows nothing any more",
				"Whoever made it may not share this report now. Ask who sent it for another one.")
		}
		return writeErrorPage(
			c,
			http.StatusServiceUnavailable,
			"The report cannot be read now",
			"Load this page again in a moment.",
		)
	}
	leave, busy := h.opener.gate.Acquire(ctx, address)
	if busy != nil {
		c.Set(fiber.HeaderRetryAfter, "5")
		return writeErrorPage(c, http.StatusTooManyRequests, "The server is busy", "Load this page again in a moment.")
	}
	defer leave()
	r, err := h.opener.report(ctx, h.maker, s.RunID)
	switch {
	case engine.HasCode(err, engine.CodeConflict):
		return writeErrorPage(c, http.StatusConflict, "The run is not over yet",
			"Its report is here when it has ended. Load this page again then.")
	case errors.Is(err, store.ErrNotFound):
		return writeErrorPage(c, http.StatusGone, "The run was deleted", "This link showed its report until then.")
	case err != nil:
		return writeErrorPage(
			c,
			http.StatusServiceUnavailable,
			"The report cannot be made now",
			"Load this page again in a moment.",
		)
	}
	// Once an hour for each network: whoever loads a page again and again does not fill the log.
	if who := s.ShareID + " " + address; h.opener.audited.Wait(who) == 0 {
		h.opener.audited.RecordFailure(who)
		h.a.AuditLog().Record(ctx, "", "share.open", s.RunID, s.ShareID+" from "+address)
	}
	p, err := h.maker.page()
	if err != nil {
		return err
	}
	// In a sandbox: a page with an origin of its own, which knows no session of this server's.
	c.Set(fiber.HeaderContentSecurityPolicy,
		p.policy+"; frame-ancestors 'none'; sandbox allow-scripts allow-downloads allow-modals")
	c.Set(fiber.HeaderCacheControl, "private, no-store")
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Send(r.HTML)
}

// share finds the link of a secret; what cannot be one never reaches the store.
func (h *reportHandlers) share(ctx context.Context, secret string) (store.Share, error) {
	hash, ok := auth.HashSecret(shareSecretPrefix, secret)
	if !ok {
		return store.Share{}, store.ErrNotFound
	}
	return h.store.UseShare(ctx, hash)
}

// report makes a report, or takes the one that was made a moment ago.
func (o *shareOpener) report(ctx context.Context, m *ReportMaker, runID string) (Report, error) {
	o.mu.Lock()
	now := time.Now()
	for _, k := range o.cache {
		if k.report.RunID == runID && now.Before(k.expires) {
			o.mu.Unlock()
			// A run that was deleted meanwhile is found by its share.
			return k.report, nil
		}
	}
	changes := o.changes
	o.mu.Unlock()
	r, err := m.Report(ctx, runID)
	if err != nil || !r.Final {
		return r, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changes != changes {
		return r, nil
	}
	fresh := o.cache[:0:0]
	for _, k := range o.cache {
		if now.Before(k.expires) && k.report.RunID != runID {
			fresh = append(fresh, k)
		}
	}
	if len(fresh) >= reportCacheSize {
		fresh = fresh[1:]
	}
	o.cache = append(fresh, cachedReport{r, now.Add(reportCacheTTL)})
	return r, nil
}

// invalidate forgets the report of a run about which something was written.
func (o *shareOpener) invalidate(runID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changes++
	o.cache = slices.DeleteFunc(o.cache, func(k cachedReport) bool { return k.report.RunID == runID })
}

// writeErrorPage answers a stranger with a page that holds a heading and a sentence.
func writeErrorPage(c *fiber.Ctx, status int, heading, sentence string) error {
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(status).SendString(strings.NewReplacer("HEADING", html.EscapeString(heading), "SENTENCE",
		html.EscapeString(sentence)).Replace(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>HEADING · Loadstone</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:36em;margin:15vh auto;padding:0 24px}</style></head>
<body><main><h1>HEADING</h1>
<p>SENTENCE</p></main></body></html>
`))
}
