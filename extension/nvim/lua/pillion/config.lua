-- Options: the defaults, merged with those of setup(), and the errors in them.
local M = {}

---@class pillion.ChatOptions
---@field position "right"|"left"|"bottom"|"top"|"tab" where the chat opens
---@field width number columns, or a share of the screen below 1
---@field height number lines, or a share of the screen below 1 (bottom and top)
---@field input_height integer lines of the window you type in
---@field fold_thoughts boolean
---@field fold_tools boolean
---@field export_dir? string where `:w` writes; default: the project's folder
---@field icons table<string, string>

---@class pillion.ReviewOptions
---@field layout "unified"|"split"
---@field open "auto"|"always"|"never" when to open a proposal without a command: if the cursor is in the chat, always, or never
---@field quickfix boolean fill the quickfix list with the hunks of a proposal
---@field highlight boolean syntax colours in added lines

---@class pillion.Options
---@field cmd? string|string[] the command of the sidecar; default: it is searched for
---@field env? table<string, string> variables added to the environment of the sidecar
---@field model? string provider/model of new sessions
---@field mode? string mode of new sessions
---@field trust? boolean trust this folder's own configuration to start programs
---@field follow boolean write edits immediately and review them afterwards
---@field draft boolean let the agent work in a copy and review all of it at the end of its turn
---@field keymaps boolean|table<string, string|false> normal mode keys of a review; false: none
---@field global_keymaps boolean|table<string, string|false>
---@field chat pillion.ChatOptions
---@field review pillion.ReviewOptions
---@field diagnostics boolean show Pillion's problems through vim.diagnostic
---@field max_buffer integer bytes; the text of larger buffers is not sent, so the sidecar reads the file on disk
---@field notify boolean notify about approval requests
---@field restart integer how often a crashed sidecar is restarted within two minutes

---@type pillion.Options
M.defaults = {
  cmd = nil,
  env = nil,
  model = nil,
  mode = nil,
  trust = nil,
  follow = false,
  draft = false,
  keymaps = {
    next = "]h",
    prev = "[h",
    accept = "ga",
    reject = "gr",
    accept_all = "gA",
    reject_all = "gR",
    edit = "ge",
    comment = "gc",
    reset = "gz",
    split = "gs",
  },
  global_keymaps = false,
  chat = {
    position = "right",
    width = 0.4,
    height = 0.4,
    input_height = 5,
    fold_thoughts = true,
    fold_tools = true,
    export_dir = nil,
    icons = { running = "…", pending = "?", completed = "✓", failed = "✗", thought = "~", fold = "▸", user = "❯" },
  },
  review = { layout = "unified", open = "auto", quickfix = true, highlight = true },
  diagnostics = true,
  max_buffer = 16 * 1024 * 1024,
  notify = true,
  restart = 5,
}

-- The keys that `global_keymaps = true` sets.
M.global_defaults = {
  toggle = "<leader>pp",
  prompt = "<leader>pa",
  review = "<leader>pr",
  stop = "<leader>ps",
  add = "<leader>p+",
}

local one_of = {
  ["chat.position"] = { "right", "left", "bottom", "top", "tab" },
  ["review.layout"] = { "unified", "split" },
  ["review.open"] = { "auto", "always", "never" },
}
local types = {
  cmd = { "string", "table" },
  env = { "table" },
  model = { "string" },
  mode = { "string" },
  trust = { "boolean" },
  keymaps = { "boolean", "table" },
  global_keymaps = { "boolean", "table" },
  ["chat.export_dir"] = { "string" },
}
local free = { env = true, cmd = true, ["chat.icons"] = true }

---@type pillion.Options
M.options = vim.deepcopy(M.defaults)
M.was_set = false

local function nearest(word, among)
  local best, least
  for _, w in ipairs(among) do
    local d = math.abs(#w - #word)
    for i = 1, math.min(#w, #word) do
      d = d + (w:sub(i, i) == word:sub(i, i) and 0 or 1)
    end
    if w:find(word, 1, true) or word:find(w, 1, true) then
      d = math.min(d, 2)
    end
    if not least or d < least then
      best, least = w, d
    end
  end
  return least and least <= math.max(3, #word / 2) and best or nil
end

local function check(given, default, prefix, problems)
  for key, value in pairs(given) do
    local name = prefix .. tostring(key)
    local want = types[name] or (default[key] ~= nil and { type(default[key]) })
    if not want then
      local known = vim.tbl_keys(default)
      for t in pairs(types) do
        if t:sub(1, #prefix) == prefix and not t:sub(#prefix + 1):find(".", 1, true) then
          known[#known + 1] = t:sub(#prefix + 1)
        end
      end
      local meant = nearest(tostring(key), known)
      problems[#problems + 1] = ("unknown option %s%s"):format(name, meant and (", did you mean " .. prefix .. meant .. "?") or "")
    elseif not vim.tbl_contains(want, type(value)) then
      problems[#problems + 1] = ("%s: want a %s, got a %s"):format(name, table.concat(want, " or "), type(value))
    elseif one_of[name] and not vim.tbl_contains(one_of[name], value) then
      problems[#problems + 1] = ("%s: want one of %s, got %q"):format(name, table.concat(one_of[name], ", "), value)
    elseif type(value) == "table" and type(default[key]) == "table" and not free[name] then
      check(value, default[key], name .. ".", problems)
    end
  end
end

-- Returns the errors in options as texts; empty if there are none.
---@param given any
---@return string[]
function M.problems(given)
  if given ~= nil and type(given) ~= "table" then
    return { "setup(): want a table, got a " .. type(given) }
  end
  local problems = {}
  local schema = vim.deepcopy(M.defaults)
  schema.global_keymaps = vim.deepcopy(M.global_defaults)
  for _, group in ipairs({ "keymaps", "global_keymaps" }) do
    for key in pairs(schema[group]) do
      types[group .. "." .. key] = { "string", "boolean" }
    end
  end
  check(given or {}, schema, "", problems)
  table.sort(problems)
  return problems
end

-- Merges options over the defaults. Invalid options are reported and left out; the others are used.
---@param given? table
---@return string[] problems
function M.set(given)
  local problems = M.problems(given)
  if #problems > 0 then
    given = type(given) == "table" and vim.deepcopy(given) or {}
    for key in pairs(given) do
      if #M.problems({ [key] = given[key] }) > 0 then
        given[key] = nil
      end
    end
  end
  M.options = vim.tbl_deep_extend("force", vim.deepcopy(M.defaults), given or {})
  if type(M.options.keymaps) ~= "table" then
    M.options.keymaps = M.options.keymaps and vim.deepcopy(M.defaults.keymaps) or {}
  end
  M.was_set = true
  return problems
end

return M
