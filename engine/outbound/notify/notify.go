// Package notify sends notifications of how runs ended, and of scheduled runs that did not start: as a signed webhook,
// as a message that Slack takes, or by e-mail. Each hook has a queue; a run never waits for a notification.
package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/outbound/delivery"
	"github.com/loadstone-db/loadstone/engine/results/compare"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Event is what has become of a run.
type Event string

// The events.
const (
	Finished  Event = "finished"  // it has completed, and has not regressed
	Regressed Event = "regressed" // it has completed, worse than its baseline; without one, a threshold does not hold
	Threshold Event = "threshold" // it has completed, and a threshold does not hold
	Failed    Event = "failed"    // it has not completed, and nobody has cancelled it
	Missed    Event = "missed"    // a scheduled run did not start
	Test      Event = "test"      // somebody tries the hook
)

// Notice is what is told; the body of a webhook.
type Notice struct {
	DeliveryID   string            `json:"delivery_id"`
	Event        Event             `json:"event"`
	RunID        string            `json:"run_id"`
	RunName      string            `json:"run_name"`
	TemplateID   string            `json:"template_id,omitempty"`
	TemplateName string            `json:"template_name,omitempty"`
	Status       engine.Status     `json:"status,omitempty"`
	StopReason   engine.StopReason `json:"stop_reason,omitempty"`
	Reason       string            `json:"reason,omitempty"` // why a run has failed, or did not start, in words
	Validity     engine.Verdict    `json:"validity,omitempty"`
	// Simulated and Emulated: the figures are those of a stand-in.
	Simulated bool                `json:"simulated"`
	Emulated  bool                `json:"emulated"`
	Passed    *bool               `json:"passed"`
	QPS       *float64            `json:"qps"`
	P95Ms     *float64            `json:"p95_ms"`
	ErrorRate *float64            `json:"error_rate"`
	Baseline  *BaselineComparison `json:"held_against,omitempty"`
	Tags      map[string]string   `json:"tags,omitempty"`
	StartTime engine.Time         `json:"start_time"`
	EndTime   engine.Time         `json:"end_time"`
	URL       string              `json:"url,omitempty"`
	// Schedule is the schedule whose run did not start.
	Schedule *MissedSchedule `json:"schedule,omitempty"`
}

// MissedSchedule is a schedule with the start that did not happen.
type MissedSchedule struct {
	ScheduleID string              `json:"schedule_id"`
	Name       string              `json:"name"`
	DueAt      engine.Time         `json:"due_at"`
	Outcome    engine.StartOutcome `json:"outcome"`
	Missed     int                 `json:"missed,omitempty"`
}

// Bytes implements delivery.Item.
func (n Notice) Bytes() int { return 1000 + len(n.RunName) + len(n.Reason) }

// EventsOf says what has become of a run that has ended, the most telling event first: a hook gets the first that it
// wants. There are none of a run that no notification is sent of. A run that is held against a baseline has regressed
// when it is worse. Without a baseline, with held nil, one that fails a threshold has regressed, too.
func EventsOf(run engine.Run, row store.RunRow, held *BaselineComparison) []Event {
	fails := row.Passed != nil && !*row.Passed
	switch {
	case run.Status == engine.StatusFailed:
		return []Event{Failed}
	case run.Status != engine.StatusCompleted || held == nil && undecided(run, row):
		return nil
	case held != nil && held.Verdict == compare.Worse && fails:
		return []Event{Regressed, Threshold}
	case held != nil && held.Verdict == compare.Worse:
		return []Event{Regressed}
	case fails && held == nil:
		return []Event{Threshold, Regressed}
	case fails:
		return []Event{Threshold, Finished}
	}
	return []Event{Finished}
}

// undecided reports whether a run has completed, and nobody knows yet how.
func undecided(run engine.Run, row store.RunRow) bool {
	return run.Status == engine.StatusCompleted && row.Passed == nil
}

// Runs is what is asked about runs.
type Runs interface {
	Run(ctx context.Context, runID string) (engine.Run, error)
	// Row is the run as the list shows it, once its figures are there.
	Row(ctx context.Context, run engine.Run) (row store.RunRow, settled bool, err error)
}

// Options are what a Notifier is made of.
type Options struct {
	Settings store.Settings
	Runs     Runs
	// Baselines and Compare hold runs against baselines; without them thresholds decide.
	Baselines Baselines
	Compare   Comparer
	Egress    *egress.Policy
	// URL is the address of the page.
	URL       func() string
	UserAgent string
	// MailRoots are the authorities that certificates of mail servers may be of; nil for the system's.
	MailRoots *x509.CertPool
	Log       zerolog.Logger
	// SettleTimeout is how long the figures of a run are waited for once it has ended (2 minutes), and Patience how long
	// those without which nobody knows what has become of it are (an hour).
	SettleTimeout, OutcomeTimeout time.Duration
}

// Notifier tells. It is safe for concurrent use.
type Notifier struct {
	o     Options
	life  context.Context
	end   context.CancelFunc
	ended chan occasion
	done  chan struct{}

	comparing sync.Mutex

	mu     sync.Mutex
	queues map[string]*hookQueue
	log    []Delivery
}

// occasion is what there is to tell: a run that has ended, or a start of a schedule that did not happen.
type occasion struct {
	runID    string
	schedule engine.Schedule
	start    *engine.ScheduledStart
}

// hookQueue is a hook with its queue.
type hookQueue struct {
	hook  Hook
	queue *delivery.Queue[Notice]
	close func()
}

// Delivery is what became of an attempt to tell.
type Delivery struct {
	DeliveryID string      `json:"delivery_id"`
	At         engine.Time `json:"at"`
	HookID     string      `json:"hook_id"`
	HookName   string      `json:"hook_name"`
	Event      Event       `json:"event"`
	RunID      string      `json:"run_id,omitempty"`
	Attempt    int         `json:"attempt" doc:"The first is 1."`
	Delivered  bool        `json:"arrived"`
	Error      string      `json:"error,omitempty"`
}

const (
	maxDeliveries    = 200
	maxEnded         = 256
	settleTimeout    = 2 * time.Minute
	pollInterval     = 500 * time.Millisecond
	slowPollInterval = 10 * time.Second // when they are late
	readTimeout      = 5 * time.Second
)

// limits of one hook: what was not told for an hour is given up.
var limits = delivery.Limits{
	MaxItems:     200,
	MaxBytes:     1 << 20,
	BatchSize:    1,
	MinBackoff:   time.Second,
	MaxBackoff:   time.Minute,
	RetryTimeout: time.Hour,
}

// Start begins to tell of runs that end.
func Start(o Options) *Notifier {
	if o.SettleTimeout <= 0 {
		o.SettleTimeout = settleTimeout
	}
	if o.OutcomeTimeout <= 0 {
		o.OutcomeTimeout = limits.RetryTimeout
	}
	n := &Notifier{o: o, ended: make(chan occasion, maxEnded), done: make(chan struct{}), queues: map[string]*hookQueue{}}
	n.life, n.end = context.WithCancel(context.Background())
	go n.work()
	return n
}

// Ended takes a run that has ended. It does not wait. A nil Notifier tells nobody.
func (n *Notifier) Ended(runID string) {
	if n == nil {
		return
	}
	n.notify(occasion{runID: runID})
}

// ScheduleMissed takes a start of a schedule that did not happen. It does not wait.
func (n *Notifier) ScheduleMissed(s engine.Schedule, st engine.ScheduledStart) {
	n.notify(occasion{runID: st.RunID, schedule: s, start: &st})
}

func (n *Notifier) notify(o occasion) {
	select {
	case n.ended <- o:
	default:
		n.o.Log.Warn().Str("run_id", o.runID).Str("schedule_id", o.schedule.ScheduleID).
			Msg("a notification is dropped: too many runs have ended at once")
	}
}

// Close ends it: what waits is lost.
func (n *Notifier) Close() {
	n.end()
	<-n.done
	n.mu.Lock()
	queues := n.queues
	n.queues = map[string]*hookQueue{}
	n.mu.Unlock()
	// A delivery that ends meanwhile is noted, under the same lock.
	for _, q := range queues {
		q.close()
	}
}

func (n *Notifier) work() {
	defer close(n.done)
	var each sync.WaitGroup
	defer each.Wait()
	for {
		select {
		case <-n.life.Done():
			return
		case o := <-n.ended:
			each.Go(func() {
				notify := n.notifyHooks
				if o.start != nil {
					notify = n.notifyMissed
				}
				if err := notify(o); err != nil && n.life.Err() == nil {
					n.o.Log.Warn().Err(err).Str("run_id", o.runID).Str("schedule_id", o.schedule.ScheduleID).
						Msg("a notification could not be prepared and is dropped")
				}
			})
		}
	}
}

// notifyHooks puts a run into the queues of the hooks that want it.
func (n *Notifier) notifyHooks(o occasion) error {
	hooks, err := n.hooks()
	if err != nil || len(hooks) == 0 {
		return err
	}
	run, row, err := n.settled(o.runID)
	if err != nil {
		return err
	}
	var held *BaselineComparison
	if slices.ContainsFunc(hooks, func(h Hook) bool {
		return h.Wants(Finished, run) || h.Wants(Regressed, run) || h.Wants(Threshold, run)
	}) {
		held = n.compareToBaseline(run)
	}
	n.enqueueAll(hooks, run, EventsOf(run, row, held), func(e Event) Notice { return n.notice(e, run, row, held) })
	return nil
}

// ScheduleTag is the tag of scheduled runs: its value is the schedule's name.
const ScheduleTag = "schedule"

// notifyMissed is the same for a start of a schedule that did not happen.
func (n *Notifier) notifyMissed(o occasion) error {
	hooks, err := n.hooks()
	if err != nil {
		return err
	}
	s, st := o.schedule, o.start
	run := engine.Run{RunID: o.runID}
	run.Scenario.TemplateID, run.Scenario.Tags = s.TemplateID, map[string]string{ScheduleTag: s.Name}
	n.enqueueAll(hooks, run, []Event{Missed}, func(e Event) Notice {
		v := Notice{DeliveryID: uuid.NewString(), Event: e, RunID: st.RunID, TemplateID: s.TemplateID,
			TemplateName: s.TemplateName, Reason: st.Reason, Tags: run.Scenario.Tags, Schedule: &MissedSchedule{
				ScheduleID: s.ScheduleID, Name: s.Name, DueAt: st.DueAt, Outcome: st.Outcome, Missed: st.Missed}}
		if n.o.URL != nil {
			v.URL = n.o.URL() + "/schedules"
		}
		return v
	})
	return nil
}

// enqueueAll puts a notice into the queue of each hook that wants one of the events, with the first that it wants.
func (n *Notifier) enqueueAll(hooks []Hook, run engine.Run, events []Event, notice func(Event) Notice) {
	for _, h := range hooks {
		i := slices.IndexFunc(events, func(e Event) bool { return h.Wants(e, run) })
		if i < 0 {
			continue
		}
		var err error
		if h.Suspended != "" {
			err = suspended(h)
		} else {
			err = n.enqueue(h, notice(events[i]))
		}
		if err != nil {
			n.logDelivery(Delivery{HookID: h.ID, HookName: h.Name, Event: events[i], RunID: run.RunID, Error: err.Error()})
		}
	}
}

// hooks are those of now, as soon as the store says.
func (n *Notifier) hooks() ([]Hook, error) {
	for end := time.Now().Add(n.o.SettleTimeout); ; {
		hooks, err := n.current(n.life)
		if err == nil || time.Now().After(end) || !n.sleep(pollInterval) {
			return hooks, err
		}
	}
}

// sleep waits; false when the Notifier ends.
func (n *Notifier) sleep(d time.Duration) bool {
	select {
	case <-n.life.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// settled waits for the figures of a run, for a while; of one of which they alone say what has become of it, longer.
func (n *Notifier) settled(runID string) (run engine.Run, row store.RunRow, err error) {
	begin := time.Now()
	for every := pollInterval; ; {
		ctx, cancel := context.WithTimeout(n.life, readTimeout)
		done := false
		if run, err = n.o.Runs.Run(ctx, runID); err == nil {
			row, done, err = n.o.Runs.Row(ctx, run)
		}
		cancel()
		waited := time.Since(begin)
		switch {
		case err == nil && done || errors.Is(err, store.ErrNotFound):
			return run, row, err
		case waited > n.o.OutcomeTimeout && err == nil:
			return run, row, errors.New("its figures have not come")
		case waited > n.o.OutcomeTimeout:
			return run, row, err
		case waited > n.o.SettleTimeout && err == nil && !undecided(run, row):
			return run, row, nil
		case waited > n.o.SettleTimeout:
			every = min(2*every, slowPollInterval)
		}
		if !n.sleep(every) {
			return run, row, n.life.Err()
		}
	}
}

func (n *Notifier) notice(event Event, run engine.Run, row store.RunRow, held *BaselineComparison) Notice {
	v := Notice{DeliveryID: uuid.NewString(), Event: event, RunID: run.RunID, RunName: run.RunName,
		Simulated: row.Simulated, Emulated: row.Emulated,
		TemplateID: run.Scenario.TemplateID, TemplateName: run.Scenario.TemplateName, Status: run.Status,
		StopReason: run.StopReason, Passed: row.Passed, QPS: row.QPS, P95Ms: row.P95Ms, ErrorRate: row.ErrorRate,
		Baseline: held, Tags: run.Scenario.Tags, StartTime: run.StartTime, EndTime: run.EndTime}
	if run.Status == engine.StatusFailed && run.CancellationReason != nil {
		v.Reason = *run.CancellationReason
	}
	switch {
	case row.Verdict == nil:
	case *row.Verdict == engine.VerdictNone: // a rate of 0 would be a figure
		v.QPS, v.P95Ms, v.ErrorRate = nil, nil, nil
	default:
		v.Validity = *row.Verdict
	}
	if n.o.URL != nil {
		v.URL = n.o.URL() + "/runs/" + run.RunID
	}
	return v
}

// enqueue adds a notice to the queue of its hook, which is opened when it is needed, and anew when the hook has
// changed.
func (n *Notifier) enqueue(h Hook, v Notice) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.Err() != nil {
		return n.life.Err()
	}
	q := n.queues[h.ID]
	if q != nil && !q.hook.same(h) {
		go q.close() // what waits goes where it was to go, as far as it arrives at once
		q = nil
	}
	if q == nil {
		client, err := n.client(h)
		if err != nil {
			return err
		}
		q = &hookQueue{hook: h}
		q.queue = delivery.Open(client.To(), limits, func(ctx context.Context, vs []Notice, attempt int) delivery.Outcome {
			return n.attempt(ctx, client, h, vs[0], attempt+1)
		}, n.o.Log)
		queue := q.queue
		q.close = sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			queue.Close(ctx)
			client.Close()
		})
		n.queues[h.ID] = q
	}
	q.queue.Enqueue(v)
	return nil
}

// client sends the notices of a hook.
type client interface {
	// To is where notices go, without secrets.
	To() string
	// LogText is a text of the other side as it may stand in a log.
	LogText(text string) string
	// deliver makes one attempt.
	deliver(ctx context.Context, h Hook, v Notice) delivery.Outcome
	Close()
}

func (n *Notifier) client(h Hook) (client, error) {
	if h.Kind == Email {
		return newMailer(h, n.o.Egress, n.o.MailRoots)
	}
	c, err := delivery.NewClient(delivery.Endpoint{Flag: "url", URL: h.URL, UserAgent: n.o.UserAgent, Egress: n.o.Egress,
		HideInternal: true})
	return poster{c}, err
}

// poster sends notices over HTTP.
type poster struct{ *delivery.Client }

func (c poster) deliver(ctx context.Context, h Hook, v Notice) delivery.Outcome {
	body, err := h.body(v)
	if err != nil {
		return delivery.Outcome{Err: err}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	headers := []string{"X-Loadstone-Event", string(v.Event), "X-Loadstone-Delivery", v.DeliveryID,
		"X-Loadstone-Timestamp", at}
	if !h.Secret.IsZero() {
		headers = append(headers, "X-Loadstone-Signature", Sign(h.Secret.Reveal(), at, body))
	}
	answer, err := c.Post(ctx, "", "application/json", body, headers...)
	return delivery.OutcomeOf(answer, err, 1)
}

// suspended is the error of a hook to which nothing is sent any more.
func suspended(h Hook) error { return fmt.Errorf("it is suspended: %s", h.Suspended) }

// revoked is an error where a hook is deleted or suspended by now: what waits in its queue is not sent either. While
// the store does not answer, it is.
func (n *Notifier) revoked(ctx context.Context, id string) error {
	hooks, err := n.current(ctx)
	if err != nil {
		return nil //nolint:nilerr // the hooks of before hold until the store answers
	}
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.ID == id })
	switch {
	case i < 0:
		return errors.New("the notification was deleted")
	case hooks[i].Suspended != "":
		return suspended(hooks[i])
	}
	return nil
}

// attempt sends a notice once; number counts its attempts from 1 on.
func (n *Notifier) attempt(ctx context.Context, c client, h Hook, v Notice, number int) delivery.Outcome {
	if err := n.revoked(ctx, h.ID); err != nil {
		n.logDelivery(Delivery{DeliveryID: v.DeliveryID, HookID: h.ID, HookName: h.Name, Event: v.Event, RunID: v.RunID,
			Attempt: number, Error: err.Error()})
		return delivery.Outcome{Err: err}
	}
	out := c.deliver(ctx, h, v)
	out.Retry = out.Retry && !errors.Is(out.Err, egress.ErrRefused)
	d := Delivery{DeliveryID: v.DeliveryID, HookID: h.ID, HookName: h.Name, Event: v.Event, RunID: v.RunID,
		Attempt: number, Delivered: out.Err == nil || out.Delivered > 0}
	if out.Err != nil {
		d.Error = c.LogText(out.Err.Error())
	}
	n.logDelivery(d)
	return out
}

// Sign is the signature of a body: who has the secret computes the same of the timestamp, a dot, and the body.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// SendTest tells a hook that somebody tries it, once and now, and says what came of it.
func (n *Notifier) SendTest(ctx context.Context, hookID string) (Delivery, error) {
	hooks, err := n.current(ctx)
	if err != nil {
		return Delivery{}, err
	}
	i := slices.IndexFunc(hooks, func(h Hook) bool { return h.ID == hookID })
	if i < 0 {
		return Delivery{}, store.ErrNotFound
	}
	c, err := n.client(hooks[i])
	if err != nil {
		return Delivery{}, err
	}
	defer c.Close()
	v := Notice{DeliveryID: uuid.NewString(), Event: Test, RunName: "A test of the notification " + hooks[i].Name}
	if n.o.URL != nil {
		v.URL = n.o.URL() + "/settings"
	}
	n.attempt(ctx, c, hooks[i], v, 1)
	for _, d := range n.Deliveries() {
		if d.DeliveryID == v.DeliveryID {
			return d, nil
		}
	}
	return Delivery{}, fmt.Errorf("telling %s: nothing is known of it", hooks[i].Name)
}

func (n *Notifier) logDelivery(d Delivery) {
	d.At = engine.At(time.Now())
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.log) == maxDeliveries {
		n.log = slices.Delete(n.log, 0, 1)
	}
	n.log = append(n.log, d)
}

// Deliveries are the last attempts of this server, the newest first.
func (n *Notifier) Deliveries() []Delivery {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := slices.Clone(n.log)
	slices.Reverse(all)
	return all
}

// body is what a hook is sent.
func (h Hook) body(v Notice) ([]byte, error) {
	if h.Kind != Slack {
		return json.Marshal(v) //nolint:wrapcheck // it always marshals
	}
	return json.Marshal(map[string]string{"text": h.sentence(v)}) //nolint:wrapcheck // it always marshals
}
