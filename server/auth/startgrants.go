package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/run/enrichment"
	"github.com/loadstone-db/loadstone/engine/store"
)

// processUsers make runs without a user: these are what they call themselves, "loadstone run" and "loadstone serve
// --run".
var processUsers = [...]string{"cli", "serve"}

// RecordStart notes that a user starts a run or a matrix, whose production connections were confirmed, so that what of
// it begins later can be judged then, and starts it. The grant is there before; where the start is refused, who was to
// be judged before is to be judged again.
func (j Authorizer) RecordStart(
	ctx context.Context,
	u store.User,
	runID, matrixID string,
	production []store.Connection,
	start func() error,
) error {
	g := store.StartGrant{RunID: runID, MatrixID: matrixID, UserID: u.UserID, UserName: u.Name}
	for _, c := range production {
		g.Confirmed = append(g.Confirmed, c.ConnectionID)
	}
	granted, err := j.Store.SaveStartGrant(ctx, g)
	if errors.Is(err, store.ErrConflict) {
		return start() // it is not PREPARED any more, and never will be: the start is refused
	}
	if err != nil {
		return err
	}
	err = start()
	// Who tried at the same moment may have put a grant in place of this one: what was begun is this user's. The answer
	// is that of the start; a store that fails here leaves a grant of somebody who might have started it as well.
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = j.Store.ResolveStart(settling, granted, err == nil)
	return err
}

// RecheckStart is an error with CodeForbidden when a run that begins now, because it has waited or because it is the
// next of a matrix, is not for its user any more: it is gone, locked out or a viewer, the connection or the template is
// others', or the connection is production and that was not confirmed. Where no start was noted, the user is the one
// who made the run; what a process made for its operator may begin. Any other error says that this is not known.
func (j Authorizer) RecheckStart(ctx context.Context, runID string) error {
	run, err := j.Store.Run(ctx, runID)
	if err != nil {
		return err
	}
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return err
	}
	why, err := j.revokedRun(ctx, users, run)
	if err == nil && why != "" {
		return accessRevoked(why)
	}
	return err
}

// revokedRun says why a run is not its user's any more; empty when it is.
func (j Authorizer) revokedRun(ctx context.Context, users []store.User, run engine.Run) (why string, err error) {
	g, why, err := j.starter(ctx, users, run)
	if err != nil || why != "" || g.UserID == "" && g.UserName == "" {
		return why, err
	}
	production, why, err := j.revokedUse(ctx, users, g.UserID, "who started it", run)
	if err != nil || why != "" {
		return why, err
	}
	for _, c := range production {
		if !slices.Contains(g.Confirmed, c.ConnectionID) {
			return fmt.Sprintf("the connection %q is production now, and nobody has confirmed that", c.Name), nil
		}
	}
	return "", nil
}

// revokedEnrichment is the same for the enrichment of a run that is over: that of who has asked for it, or of who
// started the run.
func (j Authorizer) revokedEnrichment(
	ctx context.Context,
	users []store.User,
	run engine.Run,
	o enrichment.Origin,
) (why string, err error) {
	if o.By == (engine.Actor{}) {
		g, why, err := j.starter(ctx, users, run)
		if err != nil || why != "" || g.UserID == "" && g.UserName == "" {
			return why, err
		}
		_, why, err = j.revokedUse(ctx, users, g.UserID, "who started the run", run)
		return why, err
	}
	_, why, err = j.revokedUse(ctx, users, o.By.ID, "who asked for it", run)
	return why, err
}

// starter is who started a run, nobody for what a process made for its operator; why says that this is not known.
func (j Authorizer) starter(
	ctx context.Context,
	users []store.User,
	run engine.Run,
) (g store.StartGrant, why string, err error) {
	g, err = j.Store.StartGrant(ctx, run.RunID, run.MatrixID)
	if err == nil || !isNotFound(err) {
		return g, "", err
	}
	// It was started before starts were noted, or by the process.
	switch {
	case run.CreatedByID != "":
		return store.StartGrant{UserID: run.CreatedByID, UserName: run.CreatedBy}, "", nil
	case slices.Contains(processUsers[:], run.CreatedBy):
		return store.StartGrant{}, "", nil
	case run.CreatedBy == "":
		return g, "who started it is not known", nil
	}
	return store.StartGrant{UserName: run.CreatedBy}, "", nil
}

// revokedUse says why a user may not use a run any more, empty when it may; who says what the user did. It returns the
// connections that are production.
func (j Authorizer) revokedUse(
	ctx context.Context,
	users []store.User,
	userID, who string,
	run engine.Run,
) (production []store.Connection, why string, err error) {
	u, why := entitledUser(users, userID, who)
	if why != "" {
		return nil, why, nil
	}
	err = j.AuthorizeOrphan(ctx, u, run)
	if err == nil {
		production, err = j.AuthorizeUse(ctx, u, run.Scenario)
	}
	if engine.HasCode(err, engine.CodeForbidden) {
		return nil, "the user " + who + " may not use its connection or its template any more", nil
	}
	return production, "", err
}

// entitledUser is activeOperator for what viewers read too, in a run's end, a query's failure and wherever these are
// copied to: why neither names the user nor says what has become of the account. who says what the user did.
func entitledUser(users []store.User, userID, who string) (u store.User, why string) {
	if u, why = activeOperator(users, userID, "", ""); why != "" {
		why = "the user " + who + " has no right to it any more"
	}
	return u, why
}

// activeOperator returns a user who may have things go on; why says to operators or admins that it may not. who names
// it in the sentence, with what it did, and does says what a viewer does nothing of.
func activeOperator(users []store.User, userID, who, does string) (u store.User, why string) {
	i := slices.IndexFunc(users, func(u store.User) bool { return u.UserID == userID })
	switch {
	case i < 0:
		return u, who + " is no user any more"
	case !users[i].DisabledAt.IsZero():
		return u, who + " is locked out"
	case users[i].Role == store.RoleViewer:
		return u, who + " is a viewer now, who " + does + " nothing"
	}
	return users[i], ""
}

// ActiveOperator returns a user who may start runs now; CodeForbidden says why another may not. who names the user in
// the sentence, with what it did, and does says what a viewer does nothing of.
func (j Authorizer) ActiveOperator(ctx context.Context, userID, who, does string) (store.User, error) {
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return store.User{}, err
	}
	u, why := activeOperator(users, userID, who, does)
	if why != "" {
		return u, &engine.Error{Code: engine.CodeForbidden, Message: why + ".",
			Hint: "An operator or an admin saves the schedule again, and owns it then."}
	}
	return u, nil
}

// RecheckShare is an error with CodeForbidden when the one who made a link to a run's report then could not make
// it now: it is no user any more, locked out, a viewer, or may not use what the run used. Any other error says that
// this is not known.
func (j Authorizer) RecheckShare(ctx context.Context, s store.Share) error {
	if s.CreatedBy == "" {
		return nil // from before it was noted who made links
	}
	run, err := j.Store.Run(ctx, s.RunID)
	if err != nil {
		return err
	}
	users, err := j.Store.ListUsers(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(users, func(u store.User) bool { return madeBy(u, s.CreatedByID) })
	if i < 0 || !users[i].DisabledAt.IsZero() || users[i].Role == store.RoleViewer {
		return &engine.Error{
			Code:    engine.CodeForbidden,
			Message: s.CreatedBy + ", who made the link, may share nothing any more.",
			Hint:    "Who may use the run can make another.",
		}
	}
	_, err = j.AuthorizeRecorded(ctx, users[i], run)
	return err
}

func accessRevoked(why string) error {
	return &engine.Error{Code: engine.CodeForbidden, Message: "It was not begun: " + why + ".",
		Hint: "Who may use it can start it anew."}
}
