"""Three watches in one process, one of which stops sending: prints in which order the others notice, as RESULT."""

import json
import threading

from gradtape.distribute.groups_watch import Watch, _Line, listener
from gradtape.distribute.launch import free_addresses

addresses = free_addresses(3)
listening = listener(addresses[0])
watches = {}


def join(rank):
    watches[rank] = Watch(rank, addresses, 30.0, listening if rank == 0 else None)


joining = [threading.Thread(target=join, args=(rank,)) for rank in range(3)]
for t in joining:
    t.start()
for t in joining:
    t.join()

order, send = [], _Line.send
rank_of = {watches[rank]._line.socket.getsockname(): rank for rank in watches}


def note(line, **message):
    if "gone" in message:
        order.append(rank_of[line.socket.getpeername()])
    send(line, **message)


_Line.send = note
watches[1]._closed = True  # sends nothing any more, not even that it exits
watches[1]._line.close()
lost = [watches[rank].wait_for_news(1, 30.0) and list(watches[rank].lost) for rank in (0, 2)]
print("RESULT" + json.dumps({"order": order, "lost": lost}))
