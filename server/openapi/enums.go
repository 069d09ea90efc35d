package openapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/nodes"
	"github.com/loadstone-db/loadstone/engine/results/compare"
)

// enumerations are the types of the engine that have a few values each. The page's
// own types are made from the document, so that it is told every value there is.
var enumerations = []enumeration{
	values(engine.Statuses()...),
	values(engine.PhasePreparing, engine.PhaseWarmup, engine.PhaseMeasurement, engine.PhaseCooldown,
		engine.PhaseProcessing, engine.PhaseNone), // none: nothing is left to do
	values(engine.WorkerStarting, engine.WorkerReady, engine.WorkerRunning, engine.WorkerDraining,
		engine.WorkerCompleted, engine.WorkerFailed, engine.WorkerDead),
	values(nodes.NodeConnecting, nodes.NodeActive, nodes.NodeDraining, nodes.NodeProbing, nodes.NodeUnreachable,
		nodes.NodeRemoved),
	values(nodes.DesiredNone, nodes.DesiredDrain, nodes.DesiredRemove),
	values(nodes.NodeChangedState, nodes.NodeRequested, nodes.NodeRefused),
	values(engine.HealthHealthy, engine.HealthStale, engine.HealthDead),
	values(engine.LogInfo, engine.LogWarning, engine.LogError, engine.LogCritical),
	values(engine.VerdictValid, engine.VerdictDegraded, engine.VerdictNone),
	values(engine.EventStart, engine.EventStop, engine.EventSetPhase, engine.EventSetWorkerTarget,
		engine.EventLoadChanged),
	values(engine.ScopeRun, engine.ScopeWorkerGroup, engine.ScopeWorker),
	values(engine.StopDurationElapsed, engine.StopUserRequested, engine.StopGuardrail, engine.StopWorkerFailure,
		engine.StopSetupFailure),
	values(engine.LoadConcurrency, engine.LoadQPS, engine.LoadFindMax),
	values(engine.ArrivalConstant, engine.ArrivalPoisson, engine.ArrivalWorkload),
	values(engine.RampLinear, engine.RampStep),
	values(engine.IOAuto, engine.IOUring, engine.IOEvents, engine.IOGoroutines),
	values(engine.ScalingFixed, engine.ScalingBounded, engine.ScalingAuto),
	values(engine.IfExistsUse, engine.IfExistsRecreate, engine.IfExistsFail),
	values(engine.LoadAuto, engine.LoadCopy),
	values(engine.FindMaxConnections, engine.FindMaxRate),
	values(engine.OutcomeStable, engine.OutcomeDegraded, engine.OutcomeErrorThreshold, engine.OutcomeQueueDetected,
		engine.OutcomePlateau),
	values(engine.StageStepping, engine.StageBisecting, engine.StageConfirming, engine.StageRecovering,
		engine.StageOverloading, engine.StageDone),
	values(engine.EnrichmentPending, engine.EnrichmentRunning, engine.EnrichmentCompleted, engine.EnrichmentPartial,
		engine.EnrichmentSkipped, engine.EnrichmentFailed),
	values(engine.StartBegun, engine.StartDone, engine.StartSkipped, engine.StartMissed, engine.StartFailed),
	values(engine.RuleStop, engine.RuleWebhook),
	values(engine.RuleRunning, engine.RuleTriggered, engine.RuleEnded, engine.RuleFailed),
	values(compare.Better, compare.Worse, compare.Same, compare.Unclear),
}

// enumeration is such a type; as is the type that describes it.
type enumeration struct {
	of, as reflect.Type
	values []any
}

func values[T ~string](all ...T) enumeration {
	e := enumeration{of: reflect.TypeFor[T](), as: reflect.TypeFor[oneOf[T]]()}
	for _, v := range all {
		e.values = append(e.values, string(v))
	}
	return e
}

// oneOf describes T: one of its values, by name.
type oneOf[T ~string] struct{}

// Schema lists the values.
func (oneOf[T]) Schema(huma.Registry) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	for _, e := range enumerations {
		if e.of == reflect.TypeFor[T]() {
			s.Enum = append(s.Enum, e.values...)
		}
	}
	return s
}
