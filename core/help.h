// The last line of a message that has a page of its own in gradtape/_src/help;
// `gradtape._src.base.errors.more` in Python.
#pragma once
#define GT_MORE(topic) "\n  More: python -m gradtape help " topic
