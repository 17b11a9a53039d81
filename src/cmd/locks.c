#include <stdio.h>

#include "cmd/json.h"
#include "cmd/link.h"
#include "cmd/options.h"
#include "cmd/roll.h"
#include "cmd/show.h"
#include "cmd/tell.h"
#include "cmd/who.h"
#include "drive/clock.h"

enum { COLUMN_CAP = 128, COMMAND_CAP = 1024 };

static void show_json(size_t position, const clave_participant *p)
{
    const clave_identity *id = &p->identity;
    struct json j;
    json_begin(&j, stdout);
    json_int(&j, "position", (int64_t)position);
    json_bool(&j, "holder", position == 0);
    json_int(&j, "token", p->stat.czxid);
    json_text(&j, "node", p->node);
    json_hex(&j, "session", p->stat.ephemeral_owner);
    json_int(&j, "since_ms", p->stat.ctime);
    json_int(&j, "age_ms", clave__clock_wall() - p->stat.ctime);
    json_text(&j, "host", id->host);
    json_int(&j, "pid", id->pid);
    json_text(&j, "name", id->name);
    json_text(&j, "command", id->command);
    json_text(&j, "text", id->text);
    json_end(&j);
}

static void show_line(size_t position, const clave_participant *p)
{
    const clave_identity *id = &p->identity;
    char host[COLUMN_CAP], name[COLUMN_CAP], command[COMMAND_CAP], age[AGE_CAP], pid[24] = "-";
    if (id->pid != 0)
        snprintf(pid, sizeof pid, "%lld", (long long)id->pid);
    printf("%zu %-7s %lld %6s %s %s %s %s\n", position, position == 0 ? "holder" : "waiting",
           (long long)p->stat.czxid, age_format(clave__clock_wall() - p->stat.ctime, age),
           who_column(id->host, false, host, sizeof host), pid,
           who_column(id->name, false, name, sizeof name),
           who_column(id->command ? id->command : id->text, true, command, sizeof command));
}

static int show_queue(struct options *o, const char *path)
{
    clave_session *s;
    struct roll roll;
    int code = link_open(o, NULL, &s);
    if (code != EXIT_OK)
        return code;
    clave_err err = roll_read(s, path, o->timeout_ms, &roll);
    if (err != CLAVE_OK)
        code = tell_err(o, path, err, s);
    else if (roll.n == 0)
        note(o, "%s: nobody holds it, nobody waits", path);
    for (size_t i = 0; i < roll.n; i++)
        if (o->json)
            show_json(i, &roll.list[i]);
        else
            show_line(i, &roll.list[i]);
    roll_fini(&roll);
    link_close(s);
    return code;
}

static int run_locks(struct options *o, int argc, char **argv)
{
    if (options_next(o, argc, argv) == OPTIONS_STOP)
        return o->status;
    if (!options_args(o, 1, 1))
        return EXIT_USAGE;
    return link_path_ok(o, o->argv[0]) ? show_queue(o, o->argv[0]) : EXIT_PATH;
}

const struct verb verb_locks = {
    .name = "locks",
    .args = "PATH",
    .summary = "Print who holds a lock and who waits for it",
    .text = "One participant a line, the holder first: position, holder or waiting, token, time\n"
            "since it came, host, process, name, command; - for what its node does not say.\n",
    .max_args = -1,
    .run = run_locks,
};
