package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/base/textsafe"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

// The kinds of hooks.
const (
	Webhook = "webhook"
	Slack   = "slack"
	Email   = "email"
)

// Setting names the setting that has the hooks.
const Setting = "notifications"

// MaxHooks is how many hooks there can be.
const MaxHooks = 50

// Hook is whom is told, and what.
type Hook struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Kind string `json:"kind"`
	// Address is scheme, host and port of URL: the rest can be a secret.
	Address string `json:"address"`
	// From and To are the addresses of an e-mail; User signs in to the mail server, with Secret as its password.
	From   string   `json:"from,omitempty" doc:"Of an e-mail: its sender."`
	To     []string `json:"to,omitempty" doc:"Of an e-mail: its recipients."`
	User   string   `json:"user,omitempty" doc:"Of an e-mail: the user of the mail server."`
	Events []Event  `json:"events"`
	// TemplateID and Tags bound what is told to runs of a template, and to those that have all of these tags.
	TemplateID string            `json:"template_id,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
	Signed     bool              `json:"signed" doc:"Whether there is a secret: webhooks are signed with it, and mail servers take it as a password."`
	// OwnerID is the admin who made or changed it last; Owner is the admin's name. A hook of versions before 18 has none.
	OwnerID string `json:"owner_id,omitempty"`
	Owner   string `json:"owner,omitempty" doc:"The admin who made it, changed it last, or resumed it last. It is suspended when that user is locked out, deleted or no admin any more. Empty of hooks made before they had owners."`
	// Suspended is why it sends nothing: its owner may decide about hooks no longer.
	Suspended string `json:"suspended_reason,omitempty" doc:"Why nothing is sent; empty while it is active. An admin who changes it, or saves it with resume, takes it over."`

	// URL and Secret are kept sealed.
	URL    secret.Secret `json:"-"`
	Secret secret.Secret `json:"-"`
}

// hookSecrets is what is sealed of a hook.
type hookSecrets struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

func (h Hook) same(o Hook) bool {
	return h.URL == o.URL && h.Secret == o.Secret && h.Kind == o.Kind && h.Name == o.Name && h.From == o.From &&
		h.User == o.User && slices.Equal(h.To, o.To)
}

// Wants reports whether a hook is told of an event of a run.
func (h Hook) Wants(e Event, run engine.Run) bool {
	if !slices.Contains(h.Events, e) || h.TemplateID != "" && h.TemplateID != run.Scenario.TemplateID {
		return false
	}
	for name, value := range h.Tags {
		if has, ok := run.Scenario.Tags[name]; !ok || has != value {
			return false
		}
	}
	return true
}

// headline says in a sentence without its period what has become of a run. Names are escaped by the caller's function.
func headline(v Notice, escape func(string) string) string {
	switch {
	case v.Event == Test:
		return escape(v.RunName)
	case v.Schedule != nil:
		return "Schedule " + escape(v.Schedule.Name) + " did not start a run"
	case v.Event == Failed:
		return "Run " + escape(v.RunName) + " failed"
	}
	text := "Run " + escape(v.RunName) + " completed"
	if v.Baseline != nil {
		text += map[compare.Verdict]string{compare.Worse: " and is worse than its baseline",
			compare.Better: " and is better than its baseline",
			compare.Same:   " and performs like its baseline"}[v.Baseline.Verdict]
	}
	return text
}

// failsThresholds reports whether a run has completed and fails a threshold.
func (v Notice) failsThresholds() bool { return v.Passed != nil && !*v.Passed && v.Event != Failed }

// markup is what Slack's markup takes for text instead. What speaks as Slack does may know Markdown's links, too.
var markup = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "](", "] (")

// mentions are the words by which whoever is in a room is called, in what speaks as Slack does.
var mentions = regexp.MustCompile(`(?i)@(channel|here|all|everyone)\b`)

// maxTextLength is how many characters a message has of one text of others.
const maxTextLength = 300

// escape is a text of others in a message: on one line, cut, without what a terminal or whoever lays it out would
// obey, and without what calls people or links somewhere.
func escape(text string) string {
	return markup.Replace(mentions.ReplaceAllString(textsafe.Shorten(textsafe.OneLine(text), maxTextLength), "@ $1"))
}

// sentence is a notice as a message.
func (h Hook) sentence(v Notice) string {
	text := headline(v, escape)
	if v.Event == Test {
		return text
	}
	if v.Reason != "" {
		text += ": " + strings.TrimSuffix(escape(v.Reason), ".")
	}
	text += "."
	if v.failsThresholds() {
		text += " A threshold failed."
	}
	if v.Baseline != nil {
		for _, worse := range v.Baseline.Worse {
			text += " " + escape(worse)
		}
	}
	if v.QPS != nil {
		text += fmt.Sprintf(" %s operations/s", strconv.FormatFloat(*v.QPS, 'f', 1, 64))
	}
	if v.P95Ms != nil {
		text += fmt.Sprintf(", p95 %s ms", strconv.FormatFloat(*v.P95Ms, 'f', 2, 64))
	}
	if v.Validity != "" {
		s := engine.Summary{Validity: v.Validity, Simulated: v.Simulated, Emulated: v.Emulated}
		text += ". Validity: " + s.VerdictText() + "."
	}
	if v.URL != "" {
		text += " <" + v.URL + ">"
	}
	return text
}

// HookList are the hooks with the version of the setting.
type HookList struct {
	Hooks   []Hook
	Version int64
}

// ReadHooks returns the hooks, with what is sealed of them.
func ReadHooks(ctx context.Context, s store.Settings) (HookList, error) {
	set, err := s.Setting(ctx, Setting)
	if err != nil || set.Version == 0 {
		return HookList{}, err
	}
	l := HookList{Version: set.Version}
	if err := json.Unmarshal(set.Value, &l.Hooks); err != nil {
		return l, fmt.Errorf("reading the hooks: %w", err)
	}
	secrets := map[string]hookSecrets{}
	if len(set.Secret) > 0 {
		if err := json.Unmarshal(set.Secret, &secrets); err != nil {
			return l, fmt.Errorf("reading the addresses of the hooks: %w", err)
		}
	}
	for i := range l.Hooks {
		hidden := secrets[l.Hooks[i].ID]
		l.Hooks[i].URL, l.Hooks[i].Secret = secret.New(hidden.URL), secret.New(hidden.Secret)
	}
	return l, nil
}

func (n *Notifier) current(ctx context.Context) ([]Hook, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	l, err := ReadHooks(ctx, n.o.Settings)
	return l.Hooks, err
}

// HookInput is a hook as an admin writes it. A URL or secret that is nil stays as it is, an empty secret is taken away.
type HookInput struct {
	Hook
	NewURL, NewSecret *secret.Secret
	// Resume has a hook be its saver's though nothing of it has changed.
	Resume bool
}

// own returns the hook with its owner: who saves it, where something of it is new.
func (g HookInput) own(h, old Hook, by store.User) Hook {
	if g.Resume || g.NewURL != nil || g.NewSecret != nil || old.ID == "" || !h.same(old) ||
		h.TemplateID != old.TemplateID ||
		!slices.Equal(h.Events, old.Events) ||
		!maps.Equal(h.Tags, old.Tags) {
		h.OwnerID, h.Owner, h.Suspended = by.UserID, by.Name, ""
		return h
	}
	h.OwnerID, h.Owner, h.Suspended = old.OwnerID, old.Owner, old.Suspended
	return h
}

// Save replaces the hooks, by somebody. A refused address is said at once.
func (n *Notifier) Save(ctx context.Context, version int64, given []HookInput, by store.User) (HookList, error) {
	if len(given) > MaxHooks {
		return HookList{}, engine.InvalidField("hooks", fmt.Sprintf("has %d", len(given)),
			fmt.Sprintf("at most %d", MaxHooks))
	}
	before, err := ReadHooks(ctx, n.o.Settings)
	if err != nil {
		return HookList{}, err
	}
	known := map[string]Hook{}
	for _, h := range before.Hooks {
		known[h.ID] = h
	}
	l := HookList{Hooks: []Hook{}}
	secrets := map[string]bool{}
	for i, g := range given {
		h, err := n.validate(ctx, fmt.Sprintf("hooks[%d].", i), g, known)
		if err != nil {
			return HookList{}, err
		}
		if secrets[h.ID] {
			return HookList{}, engine.InvalidField(
				fmt.Sprintf("hooks[%d].id", i),
				"is there twice",
				"leave it out for a new one",
			)
		}
		secrets[h.ID] = true
		l.Hooks = append(l.Hooks, g.own(h, known[h.ID], by))
	}
	l.Version, err = n.write(ctx, version, l.Hooks, by.Name)
	return l, err
}

// write replaces the hooks of a version, and returns the new one.
func (n *Notifier) write(ctx context.Context, version int64, hooks []Hook, by string) (int64, error) {
	secrets := map[string]hookSecrets{}
	for _, h := range hooks {
		secrets[h.ID] = hookSecrets{h.URL.Reveal(), h.Secret.Reveal()}
	}
	value, err := json.Marshal(hooks)
	if err != nil {
		return 0, fmt.Errorf("writing the hooks: %w", err)
	}
	sealed, err := json.Marshal(secrets) //nolint:gosec // the field is what the user sends or is shown once
	if err != nil {
		return 0, fmt.Errorf("writing the addresses of the hooks: %w", err)
	}
	saved, err := n.o.Settings.SaveSetting(ctx, store.Setting{Name: Setting, Value: value, Secret: sealed,
		Version: version, UpdatedBy: by})
	return saved.Version, err
}

// maxSuspendTries is how often hooks are read again that somebody saves at the moment when some are suspended.
const maxSuspendTries = 5

// Recheck asks a judge about each hook that has an owner and is not suspended, and suspends those of which it says why.
// users is asked for the judge whenever the hooks were read.
func (n *Notifier) Recheck(
	ctx context.Context,
	users func(context.Context) (judge func(Hook) (why string), err error),
) error {
	for try := 1; ; try++ {
		l, err := ReadHooks(ctx, n.o.Settings)
		if err != nil {
			return err
		}
		judge, err := users(ctx)
		if err != nil {
			return err
		}
		changed := false
		for i, h := range l.Hooks {
			if h.OwnerID == "" || h.Suspended != "" {
				continue
			}
			if why := judge(h); why != "" {
				l.Hooks[i].Suspended, changed = why, true
				n.o.Log.Warn().Str("hook_id", h.ID).Str("hook", h.Name).Str("reason", why).
					Msg("a notification is suspended: its owner lost the right to it")
			}
		}
		if !changed {
			return nil
		}
		_, err = n.write(ctx, l.Version, l.Hooks, "the server, which suspended a notification")
		if try == maxSuspendTries || !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func (n *Notifier) validate(ctx context.Context, field string, g HookInput, known map[string]Hook) (Hook, error) {
	h := g.Hook
	old, there := known[h.ID]
	switch {
	case h.ID != "" && !there:
		return h, engine.InvalidField(field+"id", "is not known", "leave it out for a new one")
	case h.ID == "":
		h.ID = uuid.NewString()
	}
	h.Name = strings.TrimSpace(h.Name)
	if len([]rune(h.Name)) == 0 || len([]rune(h.Name)) > 100 || store.CleanText(h.Name) != h.Name {
		return h, engine.InvalidField(field+"name", "cannot be used", "choose 1 to 100 characters")
	}
	if h.Kind != Webhook && h.Kind != Slack && h.Kind != Email {
		return h, engine.InvalidField(field+"kind", fmt.Sprintf("is %q", h.Kind), "choose webhook, slack or email")
	}
	const choose = "choose some of finished, regressed, threshold, failed and missed"
	if len(h.Events) == 0 {
		return h, engine.InvalidField(field+"events", "is empty", choose)
	}
	for _, e := range h.Events {
		if !slices.Contains([]Event{Finished, Regressed, Threshold, Failed, Missed}, e) {
			return h, engine.InvalidField(field+"events", fmt.Sprintf("has %q", e), choose)
		}
	}
	h.Tags = maps.Clone(h.Tags)
	h.URL, h.Secret = secret.Secret{}, secret.Secret{}
	if there && (h.Kind == Email) == (old.Kind == Email) { // an address of the one is none of the other
		h.URL, h.Secret = old.URL, old.Secret
	}
	if g.NewSecret != nil {
		h.Secret = *g.NewSecret
	}
	if g.NewURL != nil {
		h.URL = *g.NewURL
	}
	if h.Kind == Email {
		return n.validateMail(ctx, field, h, old, g)
	}
	if h.URL.IsZero() {
		return h, engine.InvalidField(field+"url", "is missing", "write https://HOST/PATH")
	}
	if h.From != "" || len(h.To) > 0 || h.User != "" {
		return h, engine.InvalidField(field+"kind", "is "+h.Kind+", which has no from, to and user",
			"leave them out, or choose email")
	}
	h.Signed = !h.Secret.IsZero()
	if g.NewURL == nil {
		h.Address = old.Address
		return h, nil
	}
	c, err := delivery.NewClient(delivery.Endpoint{Flag: field + "url", URL: h.URL})
	if err != nil {
		return h, err
	}
	h.Address = c.To()
	c.Close()
	u, err := url.Parse(h.URL.Reveal())
	if err != nil {
		return h, engine.InvalidField(field+"url", "is no address", "write https://HOST/PATH")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return h, n.reachable(ctx, field+"url", u.Hostname(), port)
}

// reachable refuses a host that leads to addresses that may not be reached. A name that cannot be looked up now is no
// reason.
func (n *Notifier) reachable(ctx context.Context, field, host, port string) error {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return engine.InvalidField(field, "has no port that there is", "write a port from 1 to 65535")
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // a name that is not known now may be known when there is something to say
	}
	for _, ip := range found {
		if err := n.o.Egress.Check(host, netip.AddrPortFrom(ip, uint16(number))); err != nil {
			e := engine.AsError(err)
			return engine.InvalidField(field, "may not be reached: "+strings.TrimSuffix(e.Message, "."), e.Hint)
		}
	}
	return nil
}
