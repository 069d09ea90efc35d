// This part says how the load of a scenario is shared between run workers: how many
// there are at first, who follows rates and stages, what each is told, and where the
// bounds are. It is pure; who joins and who leaves while a run goes on is decided with
// engine/run/lifecycle.

package scaling
