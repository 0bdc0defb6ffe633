"""With the real model: turned questions are nearer to the code that answers them."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from vector_index_mcp.engine.models import lean_query, question_map
from vector_index_mcp.engine.models.model import OFFLINE_PACKAGE, Model
from vector_index_mcp.engine.models.wording import WORDS_AND_GIST, Reading
from vector_index_mcp.engine.types import ModelIdentity

ANSWERS = {
    "what happens when the connection to the broker drops": """client.py class Client
def _on_lost(self, error):
    self._socket = None
    self._backoff = min(self._backoff * 2, MAX_BACKOFF)
    self._timer.call_later(self._backoff, self._dial)
""",
    "how is a password stored": """accounts.py class User
def set_secret(self, raw):
    salt = os.urandom(16)
    self.digest = salt + hashlib.scrypt(raw.encode(), salt=salt, n=2**14, r=8, p=1)
""",
    "which requests are answered from memory": """middleware.js
export function cached(handler, store) {
  return async (req) => {
    if (req.method !== 'GET') return handler(req);
    const hit = store.get(req.url);
    if (hit && hit.until > Date.now()) return hit.response;
    return keep(store, req.url, await handler(req));
  };
}
""",
    "how long may a name be": """forms.go
func checkTitle(s string) error {
	if n := utf8.RuneCountInString(s); n == 0 || n > 80 {
		return errors.New("between 1 and 80 characters")
	}
	return nil
}
""",
    "where are old log files thrown away": """rotate.rs
fn prune(dir: &Path, keep: usize) -> io::Result<()> {
    let mut found = list(dir)?;
    found.sort_by_key(|e| Reverse(e.modified));
    for entry in found.into_iter().skip(keep) {
        fs::remove_file(entry.path)?;
    }
    Ok(())
}
""",
    "how does the order of two versions come about": """version.rb class Version
def <=>(other)
  pairs = segments.zip(other.segments)
  pairs.each do |ours, theirs|
    difference = ours <=> (theirs || 0)
    return difference unless difference.zero?
  end
  0
end
""",
    "who may see a private page": """policy.php class PagePolicy
public function view(User $user, Page $page): bool
{
    return $page->isPublic() || $user->id === $page->owner_id || $user->isEditor();
}
""",
    "how are texts brought to the screen width": """render.c
static int wrap(const char *s, int cols, struct line *out) {
    int n = 0, start = 0, last = -1;
    for (int i = 0; s[i]; i++) {
        if (s[i] == ' ') last = i;
        if (i - start >= cols && last > start) { push(out, &n, start, last); start = last + 1; }
    }
    return push(out, &n, start, -1);
}
""",
}
SHARPNESS = 20.0


@pytest.fixture(scope="module")
def vectors():
    """Those of the questions, as the model makes them, and of the code."""
    folder = Path(find_spec(OFFLINE_PACKAGE).submodule_search_locations[0]) / "model"
    encoder = lean_query.load(Model(ModelIdentity("default", "00", 384), folder))

    def read(texts, are_queries):
        reading = Reading(WORDS_AND_GIST, texts, are_queries=are_queries)
        return reading, np.array([encoder.encode(text) for text in reading.given])

    code, made = read([*ANSWERS.values()], are_queries=False)
    return read([*ANSWERS], are_queries=True)[1], code.vectors(made)


def surprise(questions, code):
    """How unlikely the right code is among all, in nats; 0 at best."""
    logits = SHARPNESS * questions @ code.T
    likely = np.exp(logits - logits.max(axis=1, keepdims=True))
    return float(-np.log(np.diag(likely) / likely.sum(axis=1)).mean())


@pytest.mark.long
def test_turned_questions_are_nearer_to_what_answers_them(vectors):
    questions, code = vectors
    turned = surprise(question_map.turned(questions), code)
    table = question_map.read(question_map.FILE)
    the_other_way = surprise(question_map.moved(questions, table.T), code)
    backwards = surprise(question_map.moved(questions, -table), code)
    assert turned < surprise(questions, code)
    assert turned < the_other_way
    assert turned < backwards


@pytest.mark.long
def test_a_question_is_turned_only_a_little(vectors):
    questions, _ = vectors
    assert ((question_map.turned(questions) * questions).sum(axis=1) > 0.7).all()
