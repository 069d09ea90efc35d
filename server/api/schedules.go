// This part holds the handlers of schedules, and starts their runs in the names of their owners.

package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/outbound/notify"
	"github.com/loadstone-db/loadstone/engine/run/schedule"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/server/auth"
	"github.com/loadstone-db/loadstone/server/httpx"
)

const (
	scheduleTag  = "Schedules"
	scheduleBase = "/api/v1/schedules"
)

// Schedules are the schedules as the API needs them.
type Schedules interface {
	Schedules(ctx context.Context) ([]engine.Schedule, error)
	Schedule(ctx context.Context, id string) (engine.Schedule, error)
	// Save creates a schedule, or changes that of its id and version, whose owner the user becomes.
	Save(ctx context.Context, v engine.Schedule, by store.User) (engine.Schedule, error)
	// Pause pauses the schedule of that id and version, which keeps its owner.
	Pause(ctx context.Context, v engine.Schedule, by store.User) (engine.Schedule, error)
	DeleteSchedule(ctx context.Context, id string) error
	ScheduledStarts(ctx context.Context, id string, limit int) ([]engine.ScheduledStart, error)
	auth.Schedules
	// Run starts what is due until ctx ends.
	Run(ctx context.Context, starter schedule.Starter)
}

// ScheduleList is every schedule, by name.
type ScheduleList struct {
	Schedules []engine.Schedule `json:"schedules" nullable:"false"`
}

// ScheduledStartList is what became of the starts of a schedule, the newest first.
type ScheduledStartList struct {
	Starts []engine.ScheduledStart `json:"starts" nullable:"false"`
}

// ScheduleTimes are times of a cron expression.
type ScheduleTimes struct {
	Times []engine.Time `json:"times" nullable:"false" doc:"In UTC, the soonest first."`
}

// ScheduleInput is a schedule as a user writes it.
type ScheduleInput struct {
	Name         string `json:"name" minLength:"1" maxLength:"100"`
	TemplateID   string `json:"template_id,omitempty" maxLength:"128" doc:"The template, by its id …"`
	TemplateName string `json:"template_name,omitempty" maxLength:"300" doc:"… or by its name."`
	Cron         string `json:"cron" minLength:"1" maxLength:"200" doc:"Minute, hour, day of the month, month and day of the week, or a name such as @daily."`
	TimeZone     string `json:"time_zone,omitempty" maxLength:"100" doc:"A name of the IANA database, such as Europe/Berlin. UTC when left out."`
	Paused       bool   `json:"paused,omitempty"`

	ConfirmProduction auth.Names `json:"confirm_production,omitempty"`
}

// ScheduleChange is a schedule as it shall be.
type ScheduleChange struct {
	ScheduleInput
	Version int64 `json:"version" minimum:"1" maximum:"9007199254740991" doc:"The version that was edited; 409 if somebody saved another since; the answer names the user and the time."`
}

type (
	scheduleCreateInput struct{ Body ScheduleInput }
	scheduleChangeInput struct {
		IDInput
		Body ScheduleChange
	}
	scheduledStartsInput struct {
		IDInput
		Limit int `query:"limit" minimum:"1" maximum:"200" default:"50"`
	}
	scheduleTimesInput struct {
		Cron     string `query:"cron" required:"true" maxLength:"200"`
		TimeZone string `query:"time_zone" maxLength:"100"`
		Count    int    `query:"count" minimum:"1" maximum:"50" default:"5"`
	}
)

// RegisterSchedules adds the routes.
func RegisterSchedules(a *API, s Schedules) {
	h := scheduleHandlers{a, s}
	Handle(a, NewOperation(http.MethodGet, scheduleBase, "list-schedules", scheduleTag, "List schedules by name"),
		h.list)
	create := NewOperation(http.MethodPost, scheduleBase, "create-schedule", scheduleTag,
		"Start runs of a template at the times of a cron expression", http.StatusNotFound, http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	create.Description = "Runs start in the caller's name, with the rights that the caller has then. At most one " +
		"scheduled run of a template goes on at a time: a start that is due meanwhile is skipped, and listed as such. " +
		"Connections that are production are confirmed once, here."
	Handle(a, create, h.create)
	Handle(a, NewOperation(http.MethodGet, scheduleBase+"/{id}", "get-schedule", scheduleTag, "Read a schedule",
		http.StatusNotFound), h.get)
	change := NewOperation(http.MethodPut, scheduleBase+"/{id}", "update-schedule", scheduleTag,
		"Change, pause or resume a schedule", http.StatusNotFound, http.StatusConflict)
	change.Description = "It is for the owner and admins. Whoever saves a schedule owns it; a suspended one is resumed. " +
		"A change that only pauses it needs no right to its connections, and leaves it to its owner. " +
		"When somebody else changes what the template does, the schedule is suspended."
	Handle(a, change, h.change)
	remove := NewOperation(http.MethodDelete, scheduleBase+"/{id}", "delete-schedule", scheduleTag,
		"Delete a schedule; its runs stay", http.StatusNotFound)
	remove.DefaultStatus = http.StatusNoContent
	Handle(a, remove, h.remove)
	Handle(a, NewOperation(http.MethodGet, scheduleBase+"/{id}/starts", "schedule-starts", scheduleTag,
		"List what became of the starts of a schedule, the newest first", http.StatusNotFound), h.starts)
	Handle(a, NewOperation(http.MethodGet, "/api/v1/schedule-times", "schedule-times", scheduleTag,
		"List the next times of a cron expression"), h.times)
}

type scheduleHandlers struct {
	a *API
	s Schedules
}

func (h scheduleHandlers) list(ctx context.Context, _ *struct{}) (*body[ScheduleList], error) {
	list, err := h.s.Schedules(ctx)
	return &body[ScheduleList]{ScheduleList{orEmpty(list)}}, err
}

func (h scheduleHandlers) get(ctx context.Context, in *IDInput) (*body[engine.Schedule], error) {
	v, err := h.read(ctx, in.ID)
	return &body[engine.Schedule]{v}, err
}

func (h scheduleHandlers) read(ctx context.Context, id string) (engine.Schedule, error) {
	if uuid.Validate(id) != nil {
		return engine.Schedule{}, httpx.NotFound("schedule", id)
	}
	return h.s.Schedule(ctx, id)
}

func (h scheduleHandlers) create(ctx context.Context, in *scheduleCreateInput) (*body[engine.Schedule], error) {
	if err := engine.CheckName("name", in.Body.Name); err != nil {
		return nil, err
	}
	return h.save(ctx, engine.Schedule{}, in.Body, "schedule.create")
}

func (h scheduleHandlers) change(ctx context.Context, in *scheduleChangeInput) (*body[engine.Schedule], error) {
	if err := engine.CheckName("name", in.Body.Name); err != nil {
		return nil, err
	}
	old, err := h.owned(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	old.Version = in.Body.Version
	if onlyPauses(old, in.Body.ScheduleInput) {
		return h.pause(ctx, old)
	}
	return h.save(ctx, old, in.Body.ScheduleInput, "schedule.update")
}

// onlyPauses reports whether a change does nothing but pause a schedule. One that is paused, and whose production is to
// be confirmed, is saved.
func onlyPauses(old engine.Schedule, in ScheduleInput) bool {
	return in.Paused && (!old.Paused || len(in.ConfirmProduction) == 0) && in.Name == old.Name && in.Cron == old.Cron &&
		cmp.Or(in.TimeZone, time.UTC.String()) == old.TimeZone &&
		(in.TemplateID == old.TemplateID && in.TemplateName == "" ||
			in.TemplateName == old.TemplateName && in.TemplateID == "")
}

// pause stops the starts of a schedule. Nobody has to be allowed its load for that.
func (h scheduleHandlers) pause(ctx context.Context, old engine.Schedule) (*body[engine.Schedule], error) {
	user := h.a.identity(ctx).User
	v, err := h.s.Pause(ctx, old, user)
	if err != nil {
		return nil, err
	}
	h.a.audit.Record(ctx, user.UserID, "schedule.update", v.ScheduleID, v.Name+": paused")
	return &body[engine.Schedule]{v}, nil
}

// owned is a schedule that the caller may change.
func (h scheduleHandlers) owned(ctx context.Context, id string) (engine.Schedule, error) {
	v, err := h.read(ctx, id)
	if err != nil {
		return v, err
	}
	return v, h.a.mayChange(ctx, "schedule", v.Name, store.Access{OwnerID: v.OwnerID, Owner: v.Owner, Restricted: true})
}

// save saves what the caller wrote in place of old, which has no id for a new schedule.
func (h scheduleHandlers) save(ctx context.Context, old engine.Schedule, in ScheduleInput, action string) (
	*body[engine.Schedule], error) {
	user := h.a.identity(ctx).User
	if (in.TemplateID == "") == (in.TemplateName == "") {
		return nil, engine.InvalidField("template_id", "or template_name is needed, and not both", "name one template")
	}
	if _, err := schedule.Parse(in.Cron, in.TimeZone); err != nil {
		return nil, err
	}
	// The version is read first: when the template is changed meanwhile, nothing is saved.
	saved, err := h.a.template(ctx, in.TemplateID, in.TemplateName)
	if err != nil {
		return nil, err
	}
	scenario, err := h.a.resolve(ctx, ScenarioInput{TemplateID: saved.TemplateID})
	if err != nil {
		return nil, err
	}
	production, err := h.a.authorizer().AuthorizeUse(ctx, user, scenario)
	if err != nil {
		return nil, err
	}
	// What the same owner has confirmed for this template stays confirmed.
	var confirmed []string
	unconfirmed := production[:0:0]
	for _, c := range production {
		if old.OwnerID != user.UserID || old.TemplateID != scenario.TemplateID ||
			!slices.Contains(old.Confirmed, c.ConnectionID) {
			unconfirmed = append(unconfirmed, c)
		}
		confirmed = append(confirmed, c.ConnectionID)
	}
	if err := auth.CheckConfirmed(unconfirmed, in.ConfirmProduction); err != nil {
		return nil, err
	}
	v, err := h.s.Save(ctx, engine.Schedule{
		ScheduleID:      old.ScheduleID,
		Version:         old.Version,
		Name:            in.Name,
		TemplateID:      scenario.TemplateID,
		TemplateVersion: saved.Version,
		Cron:            in.Cron,
		TimeZone:        in.TimeZone,
		Paused:          in.Paused,
		Confirmed:       confirmed,
	}, user)
	if err != nil {
		return nil, err
	}
	h.a.audit.Record(ctx, user.UserID, action, v.ScheduleID,
		fmt.Sprintf("%s: %s in %s, template %s", v.Name, v.Cron, v.TimeZone, v.TemplateName))
	return &body[engine.Schedule]{v}, nil
}

func (h scheduleHandlers) remove(ctx context.Context, in *IDInput) (*nothing, error) {
	v, err := h.owned(ctx, in.ID)
	if err == nil {
		err = h.s.DeleteSchedule(ctx, v.ScheduleID)
	}
	if err != nil {
		return nil, err
	}
	h.a.Audit(ctx, "schedule.delete", v.ScheduleID, v.Name)
	return &nothing{}, nil
}

func (h scheduleHandlers) starts(ctx context.Context, in *scheduledStartsInput) (*body[ScheduledStartList], error) {
	if _, err := h.read(ctx, in.ID); err != nil {
		return nil, err
	}
	list, err := h.s.ScheduledStarts(ctx, in.ID, in.Limit)
	return &body[ScheduledStartList]{ScheduledStartList{orEmpty(list)}}, err
}

func (h scheduleHandlers) times(_ context.Context, in *scheduleTimesInput) (*body[ScheduleTimes], error) {
	times, err := schedule.Times(in.Cron, in.TimeZone, time.Now(), in.Count)
	return &body[ScheduleTimes]{ScheduleTimes{times}}, err
}

// ScheduleStarter returns what starts the runs of schedules, in the names of their owners.
func (a *API) ScheduleStarter(s Schedules) schedule.Starter { return scheduleStarter{a, s} }

type scheduleStarter struct {
	a *API
	s Schedules
}

// unchanged is an error when a schedule was changed or suspended since v was read: a change of its template by somebody
// else suspends it in the same moment, so that what was read of the template before is what the owner knows.
func (s scheduleStarter) unchanged(ctx context.Context, v engine.Schedule) error {
	now, err := s.s.Schedule(ctx, v.ScheduleID)
	switch {
	case err != nil:
		return err
	case now.Suspended != "":
		return &engine.Error{
			Code:    engine.CodeConflict,
			Message: "The schedule was suspended meanwhile: " + now.Suspended + ".",
		}
	case now.Version != v.Version:
		return &engine.Error{Code: engine.CodeConflict, Message: "The schedule was changed while its run was being started.",
			Hint: "The next run starts as it is now."}
	}
	return nil
}

// StartScheduled implements schedule.Starter.
func (s scheduleStarter) StartScheduled(ctx context.Context, v engine.Schedule,
	created func(runID, matrixID string) error) error {
	owner, err := s.a.authorizer().ActiveOperator(ctx, v.OwnerID, v.Owner+", who owns the schedule,", "starts")
	if err != nil {
		return err
	}
	ctx = auth.WithIdentity(ctx, auth.Identity{User: owner}) // whose actions the audit log has
	scenario, err := s.a.resolve(ctx, ScenarioInput{TemplateID: v.TemplateID})
	if err == nil {
		err = s.unchanged(ctx, v)
	}
	if err != nil {
		return err
	}
	production, err := s.a.authorizer().AuthorizeUse(ctx, owner, scenario)
	if err != nil {
		return err
	}
	for _, c := range production {
		if !slices.Contains(v.Confirmed, c.ConnectionID) {
			return &engine.Error{Code: engine.CodeForbidden,
				Message: fmt.Sprintf("The connection %q is production, and its load is not confirmed.", c.Name),
				Hint:    "Save the schedule again and type the connection's name."}
		}
	}
	if _, taken := scenario.Tags[notify.ScheduleTag]; !taken {
		tags := maps.Clone(scenario.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		tags[notify.ScheduleTag] = v.Name
		if store.CheckTags(tags) == nil {
			scenario.Tags = tags
		}
	}
	by := engine.Actor{ID: owner.UserID, Name: owner.Name}
	if scenario.Matrix != nil {
		return s.startMatrix(ctx, v, scenario, by, production, created)
	}
	run, err := s.a.Runs.Create(ctx, scenario, by)
	if err != nil {
		return err
	}
	s.a.audit.Record(ctx, by.ID, "run.create", run.RunID, run.RunName+" (schedule "+v.Name+")")
	if err := created(run.RunID, ""); err != nil {
		return err
	}
	err = s.a.authorizer().RecordStart(ctx, owner, run.RunID, "", production, func() error {
		_, err := s.a.Runs.Start(ctx, run.RunID, owner.Name)
		return err
	})
	if err == nil {
		s.a.audit.Record(ctx, by.ID, "run.start", run.RunID, run.RunName+" (schedule "+v.Name+")")
	}
	return err
}

// startMatrix is StartScheduled of a template with several targets.
func (s scheduleStarter) startMatrix(ctx context.Context, v engine.Schedule, scenario engine.Scenario, by engine.Actor,
	production []store.Connection, created func(runID, matrixID string) error) error {
	if s.a.Matrices == nil {
		return &engine.Error{Code: engine.CodeUnavailable, Message: "This server runs no matrices."}
	}
	state, err := s.a.Matrices.Create(ctx, scenario, by)
	if err != nil {
		return err
	}
	s.a.audit.Record(ctx, by.ID, "matrix.create", state.MatrixID, state.Name+" (schedule "+v.Name+")")
	if err := created("", state.MatrixID); err != nil {
		return err
	}
	err = s.a.authorizer().RecordStart(ctx, store.User{UserID: by.ID, Name: by.Name}, "", state.MatrixID, production,
		func() error {
			_, err := s.a.Matrices.Start(ctx, state.MatrixID, by.Name)
			return err
		})
	if err == nil {
		s.a.audit.Record(ctx, by.ID, "matrix.start", state.MatrixID, state.Name+" (schedule "+v.Name+")")
	}
	return err
}
