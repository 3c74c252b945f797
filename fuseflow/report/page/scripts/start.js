// The page begins with what the address bar says. Without scripts, all views stand below each other, without figures.

document.documentElement.classList.add("live");
register(document);
follow();
