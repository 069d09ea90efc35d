// Package recovery decides what becomes of the runs that have lost the process that
// carried them.
//
// A server that starts finds the runs that an earlier process of its own left behind,
// and every few seconds those of other servers that no longer renew their leases. Such
// a run is claimed: its epoch rises, so that the process before it can write nothing
// more. Where nodes of other processes still carry it, it is handed to who goes on with
// it, with all that the store knows. Otherwise it is
// ended with the reason and the interval that is lost, and given its figures from
// the parts that its run workers left on the nodes. What the earlier process had noted
// of the run's validity is kept. Parts of a run that had ended already are taken in, and
// its figures computed anew; what nodes hold of runs that nobody carries is ended.
package recovery
