/* fault.h - the single faults, for the nemesis: each draws its victim, and returns
 * whether it found one. */
#ifndef CLAVE_SIM_FAULT_H
#define CLAVE_SIM_FAULT_H

#include "nemesis.h"

struct host *nemesis_any_host(struct nemesis *n);
/* A holder, when there is one: there it matters most. */
struct host *nemesis_any_victim(struct nemesis *n);
/* Often about a session's length, where it matters most. */
int64_t nemesis_while(struct nemesis *n);

bool fault_cut(struct nemesis *n);
bool fault_cut_later(struct nemesis *n);
bool fault_message(struct nemesis *n);
bool fault_refuse_watches(struct nemesis *n);
bool fault_half_open(struct nemesis *n);
bool fault_refuse(struct nemesis *n);
bool fault_dial_timeout(struct nemesis *n);
bool fault_stall(struct nemesis *n);
bool fault_pause(struct nemesis *n);
bool fault_pause_in_loop(struct nemesis *n);
bool fault_kill(struct nemesis *n);
bool fault_kill_in_loop(struct nemesis *n);
bool fault_machine_lost(struct nemesis *n);
bool fault_no_memory(struct nemesis *n);
void fault_clients_init(struct nemesis *n);
void fault_clients_end(struct nemesis *n);

bool fault_stop_server(struct nemesis *n);
bool fault_kill_server(struct nemesis *n);
bool fault_power_server(struct nemesis *n);
bool fault_power_at_sync(struct nemesis *n);
bool fault_pause_server(struct nemesis *n);
bool fault_slow_disk(struct nemesis *n);
bool fault_stall_disk(struct nemesis *n);
bool fault_disk_full(struct nemesis *n);
bool fault_sync_fails(struct nemesis *n);
bool fault_swap_session(struct nemesis *n);
bool fault_restore(struct nemesis *n);
void fault_server_init(struct nemesis *n);
void fault_server_end(struct nemesis *n);

bool fault_cut_member(struct nemesis *n);
bool fault_late_then_cut(struct nemesis *n);
bool fault_kill_member(struct nemesis *n);
bool fault_lag_member(struct nemesis *n);
bool fault_cut_leader(struct nemesis *n);
bool fault_pause_leader(struct nemesis *n);
bool fault_kill_leader(struct nemesis *n);
void fault_ensemble_init(struct nemesis *n);
void fault_ensemble_end(struct nemesis *n);

bool fault_stop_guardian(struct nemesis *n);
bool fault_kill_guardian(struct nemesis *n);
bool fault_sleep(struct nemesis *n);
void fault_runners_init(struct nemesis *n);
void fault_runners_end(struct nemesis *n);

bool fault_end_session(struct nemesis *n);
bool fault_intrude(struct nemesis *n);
bool fault_remove_node(struct nemesis *n);
bool fault_write_node(struct nemesis *n);
bool fault_foreign_node(struct nemesis *n);
bool fault_exhaust_counter(struct nemesis *n);
bool fault_wall_clock(struct nemesis *n);
void fault_operator_init(struct nemesis *n);
void fault_operator_end(struct nemesis *n);

#endif
